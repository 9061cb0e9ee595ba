"""The long form of the campaign: its seeds, its record, and how it goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from scripts.faults import campaign
from tests.faults.jobs import Outcome


def test_seeds_are_numbers_and_ranges() -> None:
    assert campaign.parse_seeds("1-3,7,10-10") == [1, 2, 3, 7, 10]
    assert campaign.parse_seeds("") == []


def outcome(seed: int, *troubles: str) -> Outcome:
    seen = {"seed": seed, "steps": 30, "exact": True, "checks": {"replicas": 2}, "seconds": 1.0}
    return Outcome(seed, troubles, (seen, seen))


def test_a_record_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "record.jsonl"
    kept = campaign.Kept(path)
    kept.add(campaign.record_of(outcome(3)))
    kept.add(campaign.record_of(outcome(5, "rank 0: wrong")))
    again = campaign.Kept(path)
    assert again.records == kept.records
    assert again.missing("seed", range(1, 7)) == [1, 2, 4, 6]
    assert again.missing("fatal", [3, 5]) == [3, 5]


def jobs_of(runs: list[list[int]], ends_after: int) -> Callable[..., list[Outcome]]:
    """Jobs in which every training at a multiple of `ends_after` ends its job with an error."""

    def run_seeds(seeds: Sequence[int], limit_s: float) -> list[Outcome]:
        runs.append(list(seeds))
        done = []
        for seed in seeds:
            failed = seed % ends_after == 0
            done.append(outcome(seed, *(["Traceback"] if failed else [])))
            if failed:
                break
        return done

    return run_seeds


def test_a_job_that_ended_early_is_followed_by_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[list[int]] = []
    monkeypatch.setattr(campaign, "run_seeds", jobs_of(runs, 10))
    found = list(campaign.run_all(range(1, 41), lambda: True))
    assert [record["seed"] for record in found] == list(range(1, 41))
    assert [seeds[0] for seeds in runs] == [1, 11, 21, 31]


def test_no_job_begins_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[list[int]] = []
    monkeypatch.setattr(campaign, "run_seeds", jobs_of(runs, 1000))
    found = list(campaign.run_all(range(1, 200), lambda: len(runs) < 2))
    assert len(found) == 2 * campaign.SEEDS_A_JOB


def test_a_job_that_runs_nothing_ends_the_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "run_seeds", lambda seeds, limit_s: [])
    with pytest.raises(SystemExit, match="ran none"):
        list(campaign.run_all([1, 2], lambda: True))


def test_a_report_keeps_what_people_have_written(tmp_path: Path) -> None:
    path = tmp_path / "faults.md"
    campaign.write_report(path, [campaign.record_of(outcome(1))])
    assert "What it found" not in path.read_text()
    path.write_text(path.read_text() + "\n## What it found\n\nA fault, and its end.\n")
    records: list[Any] = [campaign.record_of(outcome(seed)) for seed in (1, 2)]
    campaign.write_report(path, records)
    text = path.read_text()
    assert "| seeds | 1-2 |" in text
    assert text.endswith("## What it found\n\nA fault, and its end.\n")


def test_the_command_of_a_failure_repeats_it() -> None:
    words = campaign.record_of(outcome(41, "wrong"))["command"].split()
    assert words[1:3] == ["-m", "scripts.faults.campaign"]
    assert campaign.parser().parse_args(words[3:]).seeds == [41]
