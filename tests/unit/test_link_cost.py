import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.solver.link_cost import Sample, fit_link, service_times_us

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
