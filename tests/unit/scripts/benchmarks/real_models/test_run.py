"""Which cells are measured, and how ranks become one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from scripts.benchmarks.real_models import run as bench
from scripts.benchmarks.real_models.run import ARMS, Cell, cells, parse, slowest, tuned


def test_a_turn_takes_as_long_as_on_its_slowest_rank() -> None:
    first = {"stock": {"times_ms": [5.0, 100.0], "loss": 1.0}}
    other = {"stock": {"times_ms": [7.0, 90.0], "loss": 2.0}}
    assert slowest([first, other]) == {"stock": {"times_ms": [7.0, 100.0], "loss": 1.0}}


def test_rates_follow_from_the_ratio_and_from_what_computing_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def measured(*_: object, **changes: Any) -> dict[str, Any]:
        assert changes["arms"] == ["alone"]
        return {"alone": {"times_ms": [400.0, 500.0, 900.0], "bytes": 25_000_000}}

    monkeypatch.setattr(bench, "run", measured)
    monkeypatch.setattr(bench.cluster, "standing", lambda *_: contextlib.nullcontext())
    # 200 Mbit in half a second of computing.
    assert cells(parse(["--ccr", "1", "2"]), "gpt", tmp_path) == [
        Cell("gpt", 400, 1.0),
        Cell("gpt", 200, 2.0),
    ]
    four = parse(["--ccr", "1", "--hosts", "4"])  # each sends one and a half times as much
    assert cells(four, "gpt", tmp_path) == [Cell("gpt", 600, 1.0)]
    given = parse(["--rate-mbit", "300"])
    assert cells(given, "vit", tmp_path) == [Cell("vit", 300)]


def test_a_title_says_the_ratio_where_there_is_one() -> None:
    assert Cell("vit", 300).title == "vit, 300 Mbit/s"
    assert Cell("vit", 300, 0.5).title == "vit, CCR 0.5 (300 Mbit/s)"


def test_all_arms_run_unless_some_are_named() -> None:
    assert parse([]).arms == [*ARMS]
    assert parse(["--arms", "alone", "stock"]).arms == ["alone", "stock"]


def test_stock_is_tuned_by_jobs_with_settings_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: list[dict[str, str]] = []

    def measured(*given: Any, **changes: Any) -> dict[str, Any]:
        assert changes["arms"] == ["alone", "stock"]
        told.append(given[3])
        return {"alone": {"times_ms": [10.0]}, "stock": {"times_ms": [10.0 * len(told)]}}

    monkeypatch.setattr(bench, "run", measured)
    rows = tuned(parse(["--tune"]), "gpt", tmp_path, 8e6)
    assert told[:2] == [
        {"HOROVOD_CYCLE_TIME": "1"},
        {"HOROVOD_CYCLE_TIME": "1", "HOROVOD_FUSION_THRESHOLD": "1000000"},
    ]
    assert len(rows) == 2 + len(told)
    assert rows[3].endswith("| 20 (20 .. 20) | 2.00 (2.00 .. 2.00) |")
