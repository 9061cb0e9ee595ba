"""Models of text: what their heads add."""

import pytest

from deft_horovod.workloads.catalogue import SHAPES

# Of the heads for pretraining: masked words (dense, norm, bias) and the next sentence.
HEADS = {"bert_base": (768, 7), "bert_large": (1024, 7)}


@pytest.mark.parametrize("name", HEADS)
def test_pretraining_adds_heads_that_share_the_embedding(name: str) -> None:
    width, tensors = HEADS[name]
    bare, whole = SHAPES[name](), SHAPES[f"{name}_pretraining"]()
    added = width**2 + width + 2 * width + 30_522 + 2 * width + 2
    assert (whole.elements - bare.elements, whole.tensors - bare.tensors) == (added, tensors)
    assert [layer.shared for layer in whole.layers if layer.shared] == [("embedding.words",)]


def test_the_embedding_is_used_first_and_last() -> None:
    layers = SHAPES["gpt2"]().layers
    assert "wte" in [tensor.name for tensor in layers[0].tensors]
    assert layers[-1].shared == ("embedding.wte",)
    assert layers[-1].tensors == ()
