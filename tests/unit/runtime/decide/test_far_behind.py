"""Candidates that are far slower than another have no further turn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.plan import Plan
from deft_horovod.plan.formats import is_encoded, message_bytes
from deft_horovod.profile import LinkCost, LinkProfile, Profile
from deft_horovod.runtime.decide.far_behind import StepRange, exact_ranges, far_behind
from tests.unit.support.random_plans import plans

ranges = st.builds(
    lambda shortest_us, more_us: StepRange(shortest_us, shortest_us + more_us),
    st.floats(1.0, 1e6),
    st.floats(0.0, 1e6),
)
names = st.tuples(st.sampled_from(["stock", "bucket", "priority", "least_stale"]), st.booleans())


@given(st.dictionaries(names, ranges, min_size=1))
def test_whoever_is_dropped_was_slower_in_every_step_and_somebody_stays(
    found: dict[tuple[str, bool], StepRange],
) -> None:
    slow = far_behind(found)
    left = [one for who, one in found.items() if who not in slow]
    assert left
    for who in slow:
        assert found[who].shortest_us > min(one.longest_us for one in left)


def test_one_long_step_of_the_fastest_or_one_short_one_of_the_slowest_keeps_it() -> None:
    stock, ours = ("stock", False), ("fewest_bytes", False)
    assert far_behind({stock: StepRange(190.0, 210.0), ours: StepRange(70.0, 75.0)}) == {stock}
    assert not far_behind({stock: StepRange(190.0, 210.0), ours: StepRange(70.0, 150.0)})
    assert not far_behind({stock: StepRange(100.0, 210.0), ours: StepRange(70.0, 75.0)})


@given(plans(), st.floats(0.0, 10.0))
def test_exact_bytes_take_as_long_as_the_link_takes_for_them(plan: Plan, beta_us: float) -> None:
    cost = LinkCost(alpha_us=100.0, beta_us_per_byte=beta_us)
    links = (LinkProfile(name="horovod", cost=cost),)
    profile = Profile.assumed(1).model_copy(update={"links": links})
    who = ("bucket", False)
    found = exact_ranges([who], profile, plan)[who]
    sent_us = beta_us * sum(message_bytes(plan))
    assert is_encoded(plan) or found.shortest_us == sent_us
    assert not exact_ranges([who], None, plan)
    assert not exact_ranges([who], profile.model_copy(update={"links": ()}), plan)
    assert not exact_ranges([who], profile, None)
