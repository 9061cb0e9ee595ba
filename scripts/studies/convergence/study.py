"""Which runs the convergence study is made of. Pure.

Screening is cheap: one seed. What it leaves goes through five seeds, at the best synchronous
learning rate and at twice that.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from scripts.studies.convergence.acco import NAME as ACCO
from scripts.studies.convergence.calm import calm_arms
from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.tasks import TASKS
from scripts.studies.convergence.training import Run

RATES: Final[Mapping[str, Sequence[float]]] = {
    "sgd": (0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
    "adam": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    "adamw": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    "muon": (0.005, 0.01, 0.02, 0.05, 0.1),
}
SYNCHRONOUS: Final = Arm()
# Every correction that was tried, as fields of an arm.
CORRECTIONS: Final[Sequence[Mapping[str, Any]]] = (
    {"correction": "none"},
    {"correction": "compensated", "strength": 0.04},
    {"correction": "compensated_adaptive", "strength": 0.1},
    {"correction": "extrapolated"},
    {"correction": "slower", "strength": 0.5},
    {"correction": "momentum"},
    {"correction": "previous"},
    {"correction": "own_share"},
    {"correction": "own_and_previous"},
    {"correction": "local"},
    {"correction": "fed_back"},
    {"correction": ACCO},
    {"correction": "none", "warmup": 150},
    {"correction": "local", "warmup": 150},
    {"correction": "local", "partial": True},
    {"correction": "local", "partial": True, "power": 1.0},
)
# (parts that are late, delay, merged): half of the model, then all of it.
SITUATIONS: Final = ((2, 1, 1), (-1, 1, 1), (-1, 2, 1), (-1, 1, 2))
# What goes through all seeds: nothing, SAPipe's best, and ours.
FINALISTS: Final = ("none", "own_and_previous", "local")
FINAL_SITUATIONS: Final = ((2, 1, 1), (-1, 1, 1), (-1, 2, 1), (-1, 1, 4))
SEEDS: Final = (1, 2, 3, 4, 5)

Best = Mapping[tuple[str, str], float]  # learning rate of (task, optimizer)


def rate_runs(tasks: Iterable[str] = TASKS) -> list[Run]:
    """To find the best synchronous learning rate."""
    return [
        Run(task, optimizer, lr, SYNCHRONOUS, seed=0)
        for task in tasks
        for optimizer, rates in RATES.items()
        for lr in rates
    ]


def best_rates(losses: Mapping[Run, float]) -> dict[tuple[str, str], float]:
    """By the loss of the synchronous runs of seed 0."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for run, loss in losses.items():
        if run.arm == SYNCHRONOUS and run.seed == 0:
            found[run.task, run.optimizer].append((loss, run.lr))
    return {key: min(pairs)[1] for key, pairs in found.items()}


def screen_runs(best: Best) -> list[Run]:
    """Every correction, once."""
    arms = [SYNCHRONOUS]
    for late, delay, merge in SITUATIONS:
        # Without merging nothing is ever incomplete; ACCO applies everything in time.
        plain = delay == merge == 1
        tried = [
            one
            for one in CORRECTIONS
            if (merge > 1 or not one.get("partial")) and (plain or one["correction"] != ACCO)
        ]
        arms += [Arm(late, delay, merge, **fields) for fields in tried]
    return _each(best, arms, ("sgd", "adamw"), (1,))


def final_runs(best: Best, seeds: Sequence[int] = SEEDS) -> list[Run]:
    """Seed by seed, so that a study which is cut short has some of everything."""
    runs = []
    for seed in seeds:
        for optimizer in RATES:
            runs += _each(best, final_arms(optimizer), (optimizer,), (seed,))
        runs += [
            Run(task, optimizer, best[task, optimizer], arm, seed, workers=16, batch=2)
            for task, optimizer in (("cnn", "sgd"), ("cnn", "adamw"))
            if (task, optimizer) in best
            for arm in final_arms(optimizer)
        ]
    return runs


def final_arms(optimizer: str) -> list[Arm]:
    arms = [SYNCHRONOUS]
    for late, delay, merge in FINAL_SITUATIONS:
        for correction in FINALISTS:
            ours = correction == "local"
            # Those that adapt to the gradient's size take the mean of merged gradients.
            power = 1.0 if ours and merge > 1 and optimizer != "sgd" else 0.0
            arms.append(
                Arm(late, delay, merge, correction, partial=ours and merge > 1, power=power)
            )
    return [*arms, *calm_arms()]


def _each(
    best: Best, arms: Sequence[Arm], optimizers: Sequence[str], seeds: Sequence[int]
) -> list[Run]:
    return [
        Run(task, optimizer, lr * factor, arm, seed)
        for seed in seeds
        for (task, optimizer), lr in best.items()
        if optimizer in optimizers
        for factor in (1.0, 2.0)
        for arm in arms
    ]


def key(run: Run) -> str:
    """A name for the file of its outcome. What is left at its default does not count, so that
    finished runs are found again when there is a new option."""
    arm = {f.name: v for f in fields(Arm) if (v := getattr(run.arm, f.name)) != f.default}
    own = {f.name: v for f in fields(Run) if (v := getattr(run, f.name)) != f.default}
    text = json.dumps({**own, "arm": arm}, sort_keys=True)
    return f"{run.task}-{run.optimizer}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
