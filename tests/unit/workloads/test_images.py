"""Models of images: as many operations as they have."""

import pytest

from deft_horovod.workloads.catalogue import SHAPES


# Multiply-accumulate operations of forward for one sample, in 1e9, as is commonly reported.
@pytest.mark.parametrize(
    ("name", "giga"),
    [("vgg16", 15.5), ("resnet50", 4.1), ("densenet121", 2.8), ("inception_v4", 12.3)],
)
def test_arithmetic_is_that_of_the_architecture(name: str, giga: float) -> None:
    layers = SHAPES[name]().layers
    assert sum(layer.work for layer in layers) / 1e9 == pytest.approx(giga, rel=0.02)
    assert len({layer.name for layer in layers}) == len(layers)
    assert all(layer.work > 0 for layer in layers)
