"""Workloads: exact sizes, times that add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.workloads.catalogue import SHAPES

KNOWN = ("vgg19", "resnet101", "gpt2")


@pytest.mark.parametrize("name", KNOWN)
def test_scaling_keeps_total_and_proportions(name: str) -> None:
    whole = SHAPES[name]()

    @given(size_bytes=st.integers(1, 10**9))
    def check(size_bytes: int) -> None:
        scaled = whole.scaled(size_bytes)
        assert scaled.elements == max(whole.tensors, round(size_bytes / 4))
        pairs = [
            (before.elements, after.elements)
            for old, new in zip(whole.layers, scaled.layers, strict=True)
            for before, after in zip(old.tensors, new.tensors, strict=True)
        ]
        assert all(after >= 1 for _, after in pairs)
        factor = scaled.elements / whole.elements
        tolerance = 1 + whole.tensors
        assert all(abs(after - before * factor) <= tolerance for before, after in pairs)

    check()


@pytest.mark.parametrize("name", KNOWN)
def test_times_add_up_to_the_step(name: str) -> None:
    stages = SHAPES[name]().stage_s(0.2)
    assert sum(forward for forward, _ in stages) == pytest.approx(0.2 / 3)
    assert sum(backward for _, backward in stages) == pytest.approx(0.4 / 3)
    assert all(
        forward > 0 and backward == pytest.approx(2 * forward) for forward, backward in stages
    )
