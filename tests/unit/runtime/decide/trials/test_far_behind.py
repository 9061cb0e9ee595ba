"""Candidates that are far slower than another have no further turn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.policies import Request
from deft_horovod.runtime.decide.trials.far_behind import StepRange, exact_ranges, far_behind
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.planning import requests

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
    assert not far_behind({stock: StepRange(190.0, 210.0), ours: StepRange(70.0, 153.0)})
    assert not far_behind({stock: StepRange(93.0, 210.0), ours: StepRange(70.0, 75.0)})


@given(requests(linked=True), st.sampled_from(["bucket", "priority"]))
def test_exact_candidates_take_what_their_plans_are_predicted_to_take(
    asked: Request, name: str
) -> None:
    asked = replace(asked, groups=())
    plan = policies.get(name).plan(asked)
    found = exact_ranges([(name, False)], asked.config, asked.profile, plan)
    step_us = simulate(plan, asked.profile).step_us
    assert found == {(name, False): StepRange(pytest.approx(step_us))}
    unlinked = asked.profile.model_copy(update={"links": ()})
    for profile, known in ((None, plan), (asked.profile, None), (unlinked, plan)):
        assert not exact_ranges([(name, False)], asked.config, profile, known)
    fewer = plan.model_copy(update={"slots": plan.slots[:-1]})
    assert not plan.slots or not exact_ranges([(name, False)], asked.config, asked.profile, fewer)
