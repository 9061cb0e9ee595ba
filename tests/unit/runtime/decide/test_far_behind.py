"""Candidates that are far slower than another have no further turn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.runtime.decide.far_behind import StepRange, far_behind

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
