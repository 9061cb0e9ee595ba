"""How times of turns become a table."""

from __future__ import annotations

from typing import Any

from scripts.benchmarks.real_models.run import ARMS, parse, running, slowest, table


def of_rank(ms: float) -> dict[str, Any]:
    """Every arm takes twice as long as the one before it."""
    return {
        name: {"times_ms": [ms * 2**i, 3 * ms * 2**i], "loss": 2.5, "stats": {}}
        for i, name in enumerate(ARMS)
    }


def test_a_turn_takes_as_long_as_on_its_slowest_rank() -> None:
    first, other = of_rank(10.0), of_rank(10.0)
    first["stock"]["times_ms"] = [5.0, 100.0]
    other["stock"]["times_ms"] = [7.0, 90.0]
    assert slowest([first, other])["stock"]["times_ms"] == [7.0, 100.0]


def test_each_arm_is_compared_with_stock_round_by_round() -> None:
    rows = table(300, of_rank(10.0))
    assert len(rows) == 3 + len(ARMS)
    assert rows[4] == "| stock | 40 (20 .. 60) | 1.00 (1.00 .. 1.00) | 1.00 | 2.500 |  |"
    assert rows[5] == "| stock + fp16 | 80 (40 .. 120) | 2.00 (2.00 .. 2.00) | 0.50 | 2.500 |  |"


def test_without_stock_there_is_nothing_to_compare_with() -> None:
    found = {name: one for name, one in of_rank(10.0).items() if name != "stock"}
    assert "| alone | 20 (10 .. 30) |  |  | 2.500 |  |" in table(300, found)


def test_what_runs_is_told_with_its_formats() -> None:
    sizes = {"int8": {"bytes": 300, "message_bytes": 75}, "f32": {"bytes": 100}}
    assert running({"running": "least_stale", "formats": sizes}) == (
        "least_stale, 75 % int8, 25 % f32"
    )
    assert running({"running": "stock", "formats": {}}) == "stock"
    assert running({}) == ""


def test_all_arms_run_unless_some_are_named() -> None:
    assert parse([]).arms == [*ARMS]
    assert parse(["--arms", "alone", "stock"]).arms == ["alone", "stock"]
