"""Shapes of published models: as many parameters, tensors and operations as they have."""

from types import SimpleNamespace

import pytest

# Of the heads for pretraining: masked words (dense, norm, bias) and the next sentence.
HEADS = {"bert_base": (768, 7), "bert_large": (1024, 7)}


def test_sizes_are_the_published_ones(reproduction: SimpleNamespace) -> None:
    facts, shapes = reproduction.facts.load(), reproduction.model_shapes.SHAPES
    seen = set()
    for name in facts.known:
        model, _, what = name.rpartition(".")
        if model not in shapes or what not in {"parameters", "bytes", "tensors"}:
            continue
        workload = shapes[model]()
        seen.add(model)
        if what == "parameters":
            assert workload.elements == facts[name]
        elif what == "tensors":
            assert workload.tensors == facts[name]
        else:
            assert workload.size_bytes / 1e6 == pytest.approx(facts[name], abs=0.05), name
    assert seen == {name for name in shapes if not name.endswith("_pretraining")}


@pytest.mark.parametrize("name", HEADS)
def test_pretraining_adds_heads_that_share_the_embedding(
    reproduction: SimpleNamespace, name: str
) -> None:
    shapes = reproduction.model_shapes.SHAPES
    width, tensors = HEADS[name]
    bare, whole = shapes[name](), shapes[f"{name}_pretraining"]()
    added = width**2 + width + 2 * width + 30_522 + 2 * width + 2
    assert (whole.elements - bare.elements, whole.tensors - bare.tensors) == (added, tensors)
    assert [layer.shared for layer in whole.layers if layer.shared] == [("embedding.words",)]


# Multiply-accumulate operations of forward for one sample, in 1e9, as is commonly reported.
@pytest.mark.parametrize(
    ("name", "giga"),
    [("vgg16", 15.5), ("resnet50", 4.1), ("densenet121", 2.8), ("inception_v4", 12.3)],
)
def test_arithmetic_is_that_of_the_architecture(
    reproduction: SimpleNamespace, name: str, giga: float
) -> None:
    layers = reproduction.model_shapes.SHAPES[name]().layers
    assert sum(layer.work for layer in layers) / 1e9 == pytest.approx(giga, rel=0.02)
    assert len({layer.name for layer in layers}) == len(layers)
    assert all(layer.work > 0 for layer in layers)
