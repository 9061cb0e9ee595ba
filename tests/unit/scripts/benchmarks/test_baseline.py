"""How the comparison of the baseline turns rounds into a verdict."""

from __future__ import annotations

import pytest

from scripts.benchmarks import baseline


def rounds(**ratios: float) -> list[dict[str, float]]:
    """Three, of a stock Horovod that gets slower all the time."""
    times = {"plain": 1.0, "stock": 1.0, "profile": 1.0, "trial": 1.0} | ratios
    return [{name: ms * ratio for name, ratio in times.items()} for ms in (200.0, 300.0, 400.0)]


def test_a_step_is_as_slow_as_its_slowest_rank() -> None:
    first = [{"plain": 200.0, "stock": 201.0}, {"plain": 210.0, "stock": 190.0}]
    other = [{"plain": 199.0, "stock": 205.0}, {"plain": 220.0, "stock": 180.0}]
    expected = [{"plain": 200.0, "stock": 205.0}, {"plain": 220.0, "stock": 190.0}]
    assert baseline.slowest([first, other]) == expected


def test_ratios_are_taken_round_by_round() -> None:
    """What slows all arms of a round down says nothing."""
    assert baseline.ratios(rounds(stock=0.95), "stock") == pytest.approx([0.95] * 3)


@pytest.mark.parametrize("name", ["stock", "profile", "trial"])
@pytest.mark.parametrize(("ratio", "flatters"), [(0.8, False), (1.029, False), (1.031, True)])
def test_a_slower_baseline_flatters(name: str, ratio: float, flatters: bool) -> None:
    assert baseline.flatters(rounds(**{name: ratio})) == flatters


def test_the_median_decides_not_one_disturbed_round() -> None:
    disturbed = rounds()
    disturbed[1]["trial"] *= 9.0
    assert not baseline.flatters(disturbed)


def test_rows_show_median_and_spread() -> None:
    rows = baseline.lines(baseline.CONDITIONS["urgent"], rounds(trial=1.5))
    assert len(rows) == len(baseline.SERIES)
    assert rows[0] == (
        "| real-time priority | stock Horovod | 300.0 (200.0 .. 400.0) | 1.000 (1.000 .. 1.000) |"
    )
    assert rows[-1].endswith("| 450.0 (300.0 .. 600.0) | 1.500 (1.500 .. 1.500) |")
    for row in rows:
        assert row.count("|") == baseline.HEAD[0].count("|")


def test_every_condition_can_be_asked_for() -> None:
    assert baseline.parse([]).conditions == [*baseline.CONDITIONS]
    assert baseline.parse(["--conditions", "calm"]).conditions == ["calm"]
    with pytest.raises(SystemExit):
        baseline.parse(["--conditions", "quick"])
