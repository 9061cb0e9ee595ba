import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.profile import LinkSample
from deft_horovod.profile.link_cost import (
    Sample,
    fit_link,
    fit_samples,
    residual,
    service_times_us,
)

SIZES = st.lists(st.integers(1, 10_000_000), min_size=2, max_size=30)


def sent_at_once(sizes, alpha_us, beta):
    """A link that works on one message after the other, and got all of them at time 5."""
    samples, now_us = [], 5.0
    for size in sizes:
        now_us += alpha_us + beta * size
        samples.append(Sample(size, 5.0, now_us))
    return samples


def test_without_samples_nothing_is_known():
    assert fit_link([]) is None


@given(
    SIZES.filter(lambda sizes: max(sizes) > 1.01 * min(sizes)),
    st.sampled_from([0.0, 20.0, 500.0]),
    st.sampled_from([1e-4, 1e-3, 0.1]),
    st.randoms(use_true_random=False),
)
def test_a_link_that_behaves_like_the_model_is_found(sizes, alpha_us, beta, pick):
    samples = sent_at_once(sizes, alpha_us, beta)
    pick.shuffle(samples)
    cost = fit_link(samples)
    for size in sizes:
        predicted = cost.alpha_us + cost.beta_us_per_byte * size
        assert predicted == pytest.approx(alpha_us + beta * size, rel=1e-4, abs=1e-2)


@given(
    st.lists(
        st.builds(
            lambda size, sent, took: Sample(size, sent, sent + took),
            st.integers(0, 10**8),
            st.floats(0, 1e7),
            st.floats(0, 1e6),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_no_cost_is_negative_whatever_was_measured(samples):
    cost = fit_link(samples)
    assert cost.alpha_us >= 0.0
    assert 0.0 <= cost.beta_us_per_byte < float("inf")


def test_waiting_behind_another_message_is_not_service():
    samples = [Sample(10, 0.0, 100.0), Sample(10, 1.0, 150.0), Sample(10, 500.0, 530.0)]
    assert service_times_us(samples) == [100.0, 50.0, 30.0]
    assert service_times_us(samples[::-1]) == [100.0, 50.0, 30.0]


def test_messages_of_one_size_are_all_bytes():
    cost = fit_link([Sample(1000, 0.0, 100.0), Sample(1000, 200.0, 300.0)])
    assert cost.alpha_us == 0.0
    assert cost.beta_us_per_byte == pytest.approx(0.1)


def test_larger_ones_that_were_faster_cost_no_less_than_nothing_per_byte():
    cost = fit_link([Sample(10, 0.0, 100.0), Sample(1000, 200.0, 250.0)])
    assert cost.beta_us_per_byte == 0.0
    assert cost.alpha_us == pytest.approx(75.0)


def test_a_line_that_would_start_below_zero_goes_through_the_origin():
    cost = fit_link([Sample(1, 0.0, 0.0), Sample(100, 10.0, 60.0), Sample(200, 100.0, 300.0)])
    assert cost.alpha_us == 0.0
    assert cost.beta_us_per_byte == pytest.approx((100 * 50 + 200 * 200) / (1 + 100**2 + 200**2))


def test_empty_messages_are_no_division_by_zero():
    assert fit_link([Sample(0, 0.0, 10.0)]).beta_us_per_byte == 10.0


EIGHT = [16 * 4**i for i in range(10)]


def exact(sizes, alpha_us, beta):
    return [LinkSample(size_bytes=size, time_us=alpha_us + beta * size) for size in sizes]


LINES = st.tuples(
    st.sampled_from([0.0, 0.5, 20.0, 1500.0]), st.sampled_from([0.0, 1e-4, 1e-3, 0.1])
).filter(lambda line: sum(line) > 0)
MEASURED = st.lists(
    st.builds(LinkSample, size_bytes=st.integers(0, 10**9), time_us=st.floats(0, 1e9)), max_size=12
)


@given(st.lists(st.integers(16, 10**8), min_size=2, max_size=12, unique=True), LINES)
def test_a_line_through_exact_times_is_found(sizes, line):
    samples = exact(sizes, *line)
    cost = fit_samples(samples)
    for sample in samples:
        assert cost.time_us(sample.size_bytes) == pytest.approx(sample.time_us, rel=1e-5)
    assert residual(samples, cost) < 1e-5


@pytest.mark.parametrize(("alpha_us", "beta"), [(1000.0, 1 / 60), (0.0, 1e-3), (250.0, 0.0)])
def test_both_parts_of_an_exact_line_are_found(alpha_us, beta):
    cost = fit_samples(exact(EIGHT, alpha_us, beta))
    assert cost.alpha_us == pytest.approx(alpha_us, rel=1e-6, abs=1e-3)
    assert cost.beta_us_per_byte == pytest.approx(beta, rel=1e-6, abs=1e-9)


@given(MEASURED)
def test_whatever_was_measured_no_part_is_negative(samples):
    cost = fit_samples(samples)
    if not samples:
        assert cost is None
        return
    assert 0.0 <= cost.alpha_us < float("inf")
    assert 0.0 <= cost.beta_us_per_byte < float("inf")
    assert 0.0 <= residual(samples, cost) < float("inf")


@given(MEASURED.filter(bool), st.integers(0, 10**9), st.integers(0, 10**9))
def test_more_bytes_take_no_less_time(samples, one, other):
    cost = fit_samples(samples)
    assert cost.time_us(min(one, other)) <= cost.time_us(max(one, other))


@given(MEASURED.filter(bool), st.sampled_from([2.0, 10.0, 1000.0]))
def test_a_link_that_is_slower_by_a_factor_costs_that_factor(samples, factor):
    samples = [s.model_copy(update={"time_us": max(s.time_us, 1.0)}) for s in samples]
    slow = [s.model_copy(update={"time_us": factor * s.time_us}) for s in samples]
    one, other = fit_samples(samples), fit_samples(slow)
    for sample in samples:
        expected = factor * one.time_us(sample.size_bytes)
        assert other.time_us(sample.size_bytes) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("spoilt", range(10))
def test_one_time_that_is_far_off_hardly_matters(spoilt):
    samples = exact(EIGHT, 1000.0, 1 / 60)
    off = samples[spoilt].model_copy(update={"time_us": 5 * samples[spoilt].time_us})
    samples[spoilt] = off
    cost = fit_samples(samples)
    others = [s for i, s in enumerate(samples) if i != spoilt]
    assert residual(others, cost) < 0.25
    assert residual(samples, cost) > 1.0


def test_large_messages_do_not_drown_small_ones():
    """Large ones are off by more microseconds than a small one takes."""
    wrong = [1.1, 0.9] * 5
    samples = [
        s.model_copy(update={"time_us": s.time_us * w})
        for s, w in zip(exact(EIGHT, 1000.0, 1 / 60), wrong, strict=True)
    ]
    cost = fit_samples(samples)
    assert cost.alpha_us == pytest.approx(1000.0, rel=0.1)
    assert cost.beta_us_per_byte == pytest.approx(1 / 60, rel=0.15)


def test_where_a_link_is_no_line_large_messages_are_met_best():
    """Small ones wait for the next cycle whatever their size; no line meets all of them."""
    samples = [
        s.model_copy(update={"time_us": max(s.time_us, 1150.0)})
        for s in exact(EIGHT, 600.0, 1 / 40)
    ]
    cost = fit_samples(samples)
    assert residual(samples, cost) > 0.1
    assert residual(samples[-2:], cost) < 0.03
    assert cost.alpha_us == pytest.approx(1000.0, rel=0.2)


def test_without_samples_nothing_is_off():
    assert residual([], fit_link([Sample(1000, 0.0, 100.0)])) == 0.0
