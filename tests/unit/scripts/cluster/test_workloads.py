"""The models that the accelerator plays: real shapes, exact sizes, times that add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.cluster import workloads

# Of the published models.
KNOWN = {
    "vgg19": (143_667_240, 38),
    "resnet101": (44_549_160, 314),
    "gpt2": (124_439_808, 148),
}


@pytest.mark.parametrize("name", KNOWN)
def test_parameters_are_those_of_the_model(name: str) -> None:
    workload = workloads.WORKLOADS[name]()
    assert (workload.elements, workload.tensors) == KNOWN[name]
    assert len({layer.name for layer in workload.layers}) == len(workload.layers)


def test_where_the_bytes_are() -> None:
    def shares(name: str) -> list[float]:
        workload = workloads.WORKLOADS[name]()
        sizes = [t.elements for layer in workload.layers for t in layer.tensors]
        return sorted((size / workload.elements for size in sizes), reverse=True)

    assert sum(shares("vgg19")[:2]) > 0.8
    assert shares("resnet101")[0] < 0.06
    assert 0.3 < shares("gpt2")[0] < 0.33


def test_communication_takes_what_was_asked_for() -> None:
    @given(
        ranks=st.integers(2, 64),
        rate_mbit=st.integers(10, 100_000),
        ccr=st.floats(0.01, 20),
        compute_s=st.floats(0.01, 1),
    )
    def check(ranks: int, rate_mbit: int, ccr: float, compute_s: float) -> None:
        size_bytes = workloads.gradient_bytes(ranks, rate_mbit, ccr, compute_s)
        bytes_a_second = rate_mbit * 1e6 / 8 * workloads.GOODPUT
        alone_s = 2 * (ranks - 1) / ranks * size_bytes / bytes_a_second
        assert alone_s == pytest.approx(ccr * compute_s)

    check()
