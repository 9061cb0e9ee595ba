"""How times of turns become tables."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from scripts.benchmarks.real_models.run import ARMS
from scripts.benchmarks.real_models.tables import cpu_table, running, table, tuning_table


def measured(ms: float) -> dict[str, dict[str, Any]]:
    """Every arm takes twice as long as the one before it."""
    return {
        name: {"times_ms": [ms * 2**i, 3 * ms * 2**i], "loss": 2.5, "stats": {}}
        for i, name in enumerate(ARMS)
    }


def test_each_arm_is_compared_with_stock_round_by_round() -> None:
    rows = table(measured(10.0))
    assert len(rows) == 2 + len(ARMS)
    assert rows[3] == "| stock | 40 (20 .. 60) | 1.00 (1.00 .. 1.00) | 1.00 |  | 2.500 |  |"
    assert rows[4] == "| stock + fp16 | 80 (40 .. 120) | 2.00 (2.00 .. 2.00) | 0.50 |  | 2.500 |  |"


def test_without_stock_there_is_nothing_to_compare_with() -> None:
    found = {name: one for name, one in measured(10.0).items() if name != "stock"}
    assert "| alone | 20 (10 .. 30) |  |  |  | 2.500 |  |" in table(found)


def test_what_was_predicted_is_compared_with_what_was_measured() -> None:
    found = measured(10.0)
    found["auto"]["stats"] = {"prediction": {"step_us": 700_000.0}}
    row = next(row for row in table(found) if row.startswith("| auto |"))
    assert median(found["auto"]["times_ms"]) == 640.0
    assert "| 700 (+9%) |" in row


def test_cpu_time_is_told_by_owner_and_what_is_left_of_the_step() -> None:
    found = {
        "stock": {
            "times_ms": [100.0, 100.0, 100.0],
            "cpu_ms": [{"kernel": 10.0, "computing": 60.0, "Horovod": 5.0}] * 3,
        },
        "auto, exact": {
            "times_ms": [90.0, 90.0, 90.0],
            "cpu_ms": [{"kernel": 5.0, "computing": 60.0, "ours": n} for n in (1.0, 3.0, 8.0)],
        },
    }
    rows = cpu_table(found)
    assert rows[0] == "| CPU ms a step | kernel | computing | Horovod | ours | step less all that |"
    assert rows[2] == "| stock | 10 | 60 | 5 | 0 | 25 |"
    assert rows[3] == "| auto, exact | 5 | 60 | 0 | 3 | 22 |"


@pytest.mark.parametrize(
    ("stats", "text"),
    [
        (
            {
                "running": "least_stale",
                "formats": {"int8": {"bytes": 300, "message_bytes": 75}, "f32": {"bytes": 100}},
            },
            "least_stale, 75 % int8, 25 % f32",
        ),
        ({"running": "stock", "formats": {}}, "stock"),
        ({}, ""),
    ],
)
def test_what_runs_is_told_with_its_formats(stats: dict[str, Any], text: str) -> None:
    assert running(stats) == text


def test_settings_of_stock_are_told_by_what_computing_takes_in_the_same_job() -> None:
    rows = tuning_table({"cycle: 1 ms": measured(10.0), "cycle: 5 ms": measured(20.0)})
    assert rows[2] == "| cycle: 1 ms | 40 (20 .. 60) | 2.00 (2.00 .. 2.00) |"
    assert rows[3] == "| cycle: 5 ms | 80 (40 .. 120) | 2.00 (2.00 .. 2.00) |"
