"""The demo's table and verdict have to be true whatever was measured."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.demo.outcome import (
    CONFIDENCE,
    EXACT,
    FP16,
    OURS,
    TITLES,
    Outcome,
    Trained,
    legend,
    median_interval,
    table,
    verdict,
)
from tests.unit.scripts.demo.outcomes import LOSSES, ROUNDS, outcome, trained


def test_gain_and_loss_of_speed_are_both_said() -> None:
    text = verdict(outcome(**{OURS: trained(80.0), EXACT: trained(125.0), FP16: trained(50.0)}))
    assert "ours is 1.25 times as fast as stock Horovod (1.25 .. 1.25)" in text
    assert "with accuracy='exact' it is 0.80 times as fast" in text
    assert "Compression.fp16 is 2.00 times as fast" in text


def test_what_chance_may_have_done_is_no_gain() -> None:
    rounds = [[80.0], [125.0]] * (ROUNDS // 2)
    text = verdict(outcome(**{OURS: Trained(rounds, LOSSES, True), EXACT: trained(99.0)}))
    assert text.count("is about as fast as stock Horovod") == 3
    assert re.search(r"ours is about as fast as stock Horovod \(0.80 .. 1.2\d times\)", text)


def test_losses_are_compared_step_by_step_as_far_as_all_have_trained() -> None:
    longer = [*LOSSES, 1.0, 0.5]
    worse = [1.01 * loss for loss in LOSSES]
    text = verdict(outcome(**{OURS: trained(80.0, longer), EXACT: trained(80.0, worse)}))
    assert "with the same loss in each of 40 steps, bit for bit" in text
    assert "with a loss 1.00 % higher" in text


def test_broken_replicas_are_all_that_is_said() -> None:
    found = outcome(**{EXACT: trained(10.0, same=False)})
    assert "bug" in verdict(found)
    assert "times as fast" not in verdict(found)
    assert "BROKEN" in table(found)


def test_the_table_has_a_row_for_each_and_the_legend_its_rounds() -> None:
    found = outcome(**{OURS: Trained(trained(90.0).rounds_ms, LOSSES, True, "least_stale")})
    lines = table(found).splitlines()
    assert len(lines) == 1 + len(TITLES)
    assert lines[-2].split()[1:5] == ["90", "ms", "10", "ms"]
    assert lines[-2].endswith("chose least_stale")
    assert f"over {ROUNDS} rounds" in legend(found)
    assert "steps 31 to 40" in legend(found)


def test_it_survives_its_file() -> None:
    found = outcome()
    assert Outcome.from_json(found.to_json()) == found


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=40))
def test_the_interval_holds_the_median_and_is_as_sure_as_it_can_be(values: list[float]) -> None:
    low, high, confidence = median_interval(values)
    ordered = sorted(values)
    assert low <= ordered[len(values) // 2] <= high
    assert low in values
    assert high in values
    if len(values) >= 6:
        assert confidence >= CONFIDENCE
    else:
        assert (low, high) == (ordered[0], ordered[-1])


@pytest.mark.parametrize(("count", "cut"), [(5, 0), (6, 0), (8, 0), (9, 1), (12, 2), (20, 5)])
def test_the_interval_is_that_of_the_sign_test(count: int, cut: int) -> None:
    values = [float(number) for number in range(count)]
    assert median_interval(values)[:2] == (values[cut], values[-1 - cut])
