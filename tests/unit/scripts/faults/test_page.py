"""The page of the campaign says what the records say."""

from __future__ import annotations

from typing import Any

from scripts.faults import page as pages


def training(seed: int, *troubles: str, kinds: tuple[str, ...] = ("flush",)) -> dict[str, Any]:
    return {
        "form": "seed",
        "seed": seed,
        "title": "mlp, sgd",
        "command": f"campaign --seeds {seed}",
        "family": "mlp",
        "policy": "auto",
        "optimizer": "sgd",
        "kinds": list(kinds),
        "steps": 1000,
        "exact": seed % 2 == 0,
        "checks": {"replicas": 10, "reference": 7, "conservation": 1},
        "troubles": list(troubles),
    }


def fatal(seed: int, *troubles: str) -> dict[str, Any]:
    times = {"error_s": 1.0 + seed, "end_s": 2.0 + seed}
    named = {"form": "fatal", "seed": seed, "kind": "killed", "title": "killed", "command": "c"}
    return {**named, **times, "troubles": list(troubles)}


def test_outcomes() -> None:
    assert pages.outcome(training(1)) == "as expected"
    assert pages.outcome(training(1, "rank 0: replicas differ")) == "silent difference"
    assert pages.outcome(training(1, "rank 0: Traceback (most ...")) == "error"
    assert pages.outcome(training(1, "rank 0: did not end")) == "hang"
    assert pages.outcome(training(1, "Traceback", "the job was killed after 9 s")) == "hang"
    assert pages.outcome(fatal(1, "ended with status 0")) == "error"


def test_seed_ranges() -> None:
    assert pages.seed_ranges([3, 1, 2, 7, 9, 10, 9]) == "1-3, 7, 9-10"
    assert pages.seed_ranges([]) == ""


def test_the_page_counts_each_kind() -> None:
    records = [
        training(1, kinds=("flush", "stop")),
        training(2, "rank 1: replicas differ"),
        training(3, kinds=()),
        {**fatal(4), "commit": "abc"},
        {**fatal(6), "commit": "abc"},
    ]
    text = pages.page(records, {"Python": "3.11"}, "")
    assert "| flush | 2 | 2,000 | 1 | 1 | 0 | 0 |" in text
    assert "| stop | 1 | 1,000 | 1 | 0 | 0 | 0 |" in text
    assert "| nothing besides training | 1 | 1,000 | 1 | 0 | 0 | 0 |" in text
    assert "3 trainings of 3,000 steps on two ranks, 2,000 of these" in text
    assert "In 2 trainings updates came late" in text
    assert "hash 30 times" in text
    assert "| killed | 2 | 2 | 0 | 0 | 7.0 s | 8.0 s |" in text
    assert "`campaign --seeds 2` (mlp, sgd): rank 1: replicas differ" in text
    assert "| Python | 3.11 |" in text
    assert "| commits of deft_horovod | unknown (3 jobs or trainings), abc (2 jobs or" in text


def test_nothing_failed() -> None:
    assert "## Failed\n\nNone.\n" in pages.page([training(1), fatal(2)], {}, "")
