"""A seed says which fault ends a job, and where."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.faults.scripts.draw_fatal import KINDS, draw_fatal


@given(st.integers(0, 10**6))
def test_the_same_seed_gives_the_same_fault(seed: int) -> None:
    assert draw_fatal(seed) == draw_fatal(seed)


@given(st.integers(0, 10**6))
def test_the_fault_is_what_ends_it(seed: int) -> None:
    fatal = draw_fatal(seed)
    assert not fatal.script.events
    assert fatal.step < fatal.script.steps
    assert fatal.script.family != "gan"


def test_kinds_take_turns() -> None:
    assert {draw_fatal(seed).kind for seed in range(1, 1 + len(KINDS))} == set(KINDS)


def test_both_ranks_have_faults() -> None:
    assert {draw_fatal(seed).rank for seed in range(40)} == {0, 1}
