"""Who is the best, and by how much."""

from typing import Any

import pytest

from scripts.benchmarks import rivals


def cell(**steps_ms: float) -> dict[str, Any]:
    arms = {
        name: {"step_ms": {"median": ms}, "of_compute": {"median": ms / 200.0}}
        for name, ms in steps_ms.items()
    }
    return {"hosts": 2, "profile": "vgg19", "ccr": 1.0, "arms": arms}


FULL = {
    "stock": 280.0,
    "dear": 260.0,
    "bytescheduler": 250.0,
    "usbyte": 240.0,
    "covap": 210.0,
    "sync": 230.0,
    "equal": 206.0,
    "fewest": 204.0,
    "least_stale": 202.0,
    "deft": 200.0,
}


def test_exact_ones_are_compared_with_exact_ones() -> None:
    one = cell(**FULL)
    assert rivals.best(one, rivals.EXACT) == "usbyte"
    assert rivals.best(one, (*rivals.EXACT, *rivals.INEXACT)) == "covap"
    assert rivals.of_best_exact(one, "sync") == pytest.approx(230 / 240)
    assert rivals.of_best(one, "deft") == pytest.approx(200 / 210)


def test_a_row_names_the_best_and_says_how_much_faster_deft_is() -> None:
    (row,) = rivals.rows([cell(**FULL)])
    assert len(row) == len(rivals.HEAD)
    assert row[:3] == ["2", "vgg19", "1"]
    assert row[3:6] == ["usbyte 1.20", "1.15", "covap 1.05"]
    assert row[6:10] == ["1.03", "1.02", "1.01", "1.00"]
    assert row[10:] == ["+25%", "+20%"]


def test_a_faster_rival_stays_in_the_table() -> None:
    (row,) = rivals.rows([cell(**{**FULL, "usbyte": 190.0})])
    assert row[3] == row[5] == "usbyte 0.95"
    assert row[11] == "-5%"


def test_horovods_own_fp16_is_a_rival() -> None:
    (row,) = rivals.rows([cell(**FULL, stock_fp16=205.0)])
    assert (row[3], row[5]) == ("usbyte 1.20", "stock_fp16 1.02")


def test_without_published_schedulers_there_is_nothing_to_say() -> None:
    plain = cell(stock=280.0, stock_fp16=250.0, ddp=270.0, sync=230.0, deft=200.0)
    assert rivals.rows([plain]) == []
    assert rivals.of_best(plain, "deft") is None
    assert rivals.of_best_exact(plain, "sync") is None


def test_what_did_not_take_part_leaves_a_gap() -> None:
    (row,) = rivals.rows([cell(stock=280.0, p3=250.0, deft=200.0)])
    assert row[3:] == ["p3 1.25", "", "p3 1.25", "", "", "", "1.00", "", ""]
