"""A seed says everything about a script, and seeds reach every option."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from tests.faults.scripts import draw as drawing
from tests.faults.scripts.draw import Event, Script, draw, steps_between

SEEDS = range(1, 1501)
numbers = st.integers(0, 10**9)


@given(numbers)
def test_the_same_seed_gives_the_same_script(seed: int) -> None:
    assert draw(seed) == draw(seed)


def test_other_seeds_give_other_scripts() -> None:
    assert len({draw(seed).events for seed in range(200)}) > 150
    assert len({draw(seed).title() for seed in range(200)}) > 150


@given(numbers)
def test_events_are_inside_the_script_and_possible(seed: int) -> None:
    script = draw(seed)
    assert drawing.FEWEST_STEPS <= script.steps <= drawing.MOST_STEPS
    for event in script.events:
        assert 0 <= event.step < script.steps
        assert event.rank in (None, *range(drawing.RANKS))
        assert not event.place or event.kind in drawing.READS
    kinds = {event.kind for event in script.events}
    assert ("save" in kinds) == ("load" in kinds)
    assert ("freeze" in kinds) == ("unfreeze" in kinds)
    if "save" in kinds:
        order = [event.kind for event in script.events if event.kind in ("save", "load")]
        assert order == ["save", "load"]
    if script.closure:
        assert not kinds & {"discard", "freeze", "nan gradient"}


@given(numbers)
def test_the_ledger_is_counted_in_whole_steps(seed: int) -> None:
    script = draw(seed)
    if script.family == "ledger":
        assert (script.optimizer, script.dtype, script.clip) == ("sgd", "float32", False)
        assert (script.schedule, script.average) == ("none", True)


def test_every_option_is_drawn() -> None:
    scripts = [draw(seed) for seed in SEEDS]
    for name, values in {
        "family": drawing.FAMILIES,
        "optimizer": drawing.OPTIMIZERS,
        "policy": drawing.POLICIES,
        "max_delay": drawing.DELAYS,
        "max_merge": drawing.MERGES,
        "correction": drawing.CORRECTIONS,
        "accuracy_budget": drawing.BUDGETS,
        "schedule": drawing.SCHEDULES,
        "scaler": drawing.SCALERS,
        "clearing": drawing.CLEARINGS,
        "branch": drawing.BRANCHES,
        "dtype": ("float32", "float64", "bfloat16"),
        "passes": (1, 2, 3),
    }.items():
        assert {getattr(script, name) for script in scripts} == set(values), name
    for field in fields(Script):
        if field.type == "bool":
            assert {getattr(script, field.name) for script in scripts} == {True, False}, field.name
    events = [event for script in scripts for event in script.events]
    kinds = {*drawing.READS, *drawing.CHANGES, *drawing.FAULTS}
    assert {event.kind for event in events} == kinds
    assert {event.place for event in events} == {"", *drawing.READ_PLACES}


def test_a_script_that_may_be_late_says_so() -> None:
    for seed in SEEDS:
        script = draw(seed)
        exact = (script.max_delay, script.max_merge) == (0, 1)
        late = script.policy in drawing.MAY_BE_LATE and not exact
        assert script.may_be_late == late


def test_steps_between_two_kinds() -> None:
    events = [Event(2, "save"), Event(5, "load"), Event(7, "save"), Event(8, "load")]
    assert steps_between(events, "save", "load") == {2, 3, 4, 7}
    assert steps_between(events, "load", "save") == {5, 6}
