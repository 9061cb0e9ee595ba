"""Finished runs of the convergence study as the data beside its tables, and back again.

So the study goes on on another machine, or with more seeds, without training all of it anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.report import Outcomes, Setting, by_setting
from scripts.studies.convergence.training import Run

Data = Sequence[Mapping[str, Any]]


def to_data(outcomes: Outcomes) -> list[dict[str, Any]]:
    """What reports need of them: gradients are looked at in synchronous training alone."""
    return [
        {**asdict(setting), "arms": [_arm(arm, by_seed) for arm, by_seed in arms.items()]}
        for setting, arms in by_setting(outcomes).items()
    ]


def _arm(arm: Arm, by_seed: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    data = {
        **asdict(arm),
        "losses": {seed: o["loss"] for seed, o in by_seed.items()},
        "accuracies": {seed: o["accuracy"] for seed, o in by_seed.items()},
    }
    if not arm.late:
        data["statistics"] = {seed: o["statistics"] for seed, o in by_seed.items()}
    return data


def restored(runs: Iterable[Run], data: Data) -> dict[Run, dict[str, Any]]:
    """The outcomes of those runs that the data have."""
    losses: dict[tuple[Setting, Arm], Mapping[str, Any]] = {}
    for row in data:
        setting = Setting(*(row[name] for name in Setting.__annotations__))
        for one in row["arms"]:
            # An option that is newer than the data had its default then.
            arm = Arm(**{name: one[name] for name in Arm.__annotations__ if name in one})
            losses[setting, arm] = one
    found = {}
    for run in runs:
        one, seed = losses.get((Setting.of(run), run.arm), {}), str(run.seed)
        if seed not in one.get("losses", {}):
            continue
        outcome = {
            "run": asdict(run),
            "loss": one["losses"][seed],
            "accuracy": one["accuracies"][seed],
        }
        if not run.arm.late:
            if seed not in one.get("statistics", {}):
                continue
            outcome["statistics"] = one["statistics"][seed]
        found[run] = outcome
    return found


def rates_of(data: Data) -> dict[tuple[str, str], float]:
    """The best learning rates that the study was made with: the other one is twice as high."""
    rates: dict[tuple[str, str], float] = {}
    for row in data:
        key = row["task"], row["optimizer"]
        rates[key] = min(row["lr"], rates.get(key, row["lr"]))
    return rates
