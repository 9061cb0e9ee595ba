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


def test_the_embedding_is_used_first_and_last() -> None:
    layers = workloads.gpt2().layers
    assert "wte" in [tensor.name for tensor in layers[0].tensors]
    assert layers[-1].shared == ("embedding.wte",)
    assert layers[-1].tensors == ()


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


@pytest.mark.parametrize("name", KNOWN)
def test_scaling_keeps_total_and_proportions(name: str) -> None:
    whole = workloads.WORKLOADS[name]()

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
    stages = workloads.WORKLOADS[name]().stage_s(0.2)
    assert sum(forward for forward, _ in stages) == pytest.approx(0.2 / 3)
    assert sum(backward for _, backward in stages) == pytest.approx(0.4 / 3)
    assert all(
        forward > 0 and backward == pytest.approx(2 * forward) for forward, backward in stages
    )
