import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.profile import LinkCost
from deft_horovod.profile.probe_plan import SMALLEST_BYTES, probe_plan, sizes_up_to

BUDGET_US = 1_500_000.0


def cost(alpha_us, megabytes_per_s):
    return LinkCost(alpha_us=alpha_us, beta_us_per_byte=1 / megabytes_per_s)


@given(st.integers(0, 2**36))
def test_there_are_eight_sizes_at_least_from_the_header_to_about_the_largest(largest):
    sizes = sizes_up_to(largest)
    assert len(sizes) >= 8
    assert sizes == tuple(sorted(set(sizes)))
    assert sizes[0] == SMALLEST_BYTES
    assert all(size % SMALLEST_BYTES == 0 for size in sizes)
    assert abs(sizes[-1] - max(largest, 4096)) <= SMALLEST_BYTES


@given(st.floats(1.0, 1e5), st.floats(0.01, 1e5), st.integers(1, 1 << 30), st.floats(1e5, 1e7))
def test_what_is_sent_fits_into_the_time_unless_it_is_the_least(alpha_us, rate, largest, budget_us):
    link = cost(alpha_us, rate)
    plan = probe_plan(link, largest, budget_us)
    assert len(plan.sizes_bytes) >= 8
    assert plan.rounds >= 1
    assert plan.messages >= 1
    if (plan.rounds, plan.messages) != (1, 1):
        assert (plan.rounds + 1) * plan.round_us(link) <= budget_us
    assert plan.sizes_bytes[-1] <= max(largest, 4096) + SMALLEST_BYTES


@pytest.mark.parametrize(("rate", "largest"), [(60.0, 4 << 20), (1000.0, 64 << 20), (0.1, 4096)])
def test_the_largest_message_follows_the_link(rate, largest):
    plan = probe_plan(cost(1000.0, rate), 64 << 20, BUDGET_US)
    assert largest / 2 <= plan.sizes_bytes[-1] <= 2 * largest


def test_a_link_that_is_too_slow_gets_the_least():
    plan = probe_plan(cost(1e6, 1.0), 1 << 20, BUDGET_US)
    assert (len(plan.sizes_bytes), plan.rounds, plan.messages) == (8, 1, 1)
