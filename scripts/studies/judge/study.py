"""Which runs the study of harm is made of. Pure. docs/studies/judge/protocol.md says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from scripts.studies.judge.arms import ARMS, EXACT_ARM
from scripts.studies.judge.tasks import JUDGED
from scripts.studies.judge.training import Run

_RATES_SEED: Final = 100
_SEEDS: Final = {"large gpt": 3}
_MOST_SEEDS: Final = 5


@dataclass(frozen=True)
class Setting:
    """What the arms of one comparison share."""

    task: str
    optimizer: str
    lr: float
    workers: int = 4

    @classmethod
    def of(cls, run: Run) -> Setting:
        return cls(run.task, run.optimizer, run.lr, run.workers)

    @property
    def title(self) -> str:
        workers = f", {self.workers} workers" if self.workers != Setting.workers else ""
        return f"{self.task}, {self.optimizer} {self.lr:g}{workers}"

    @property
    def held_out(self) -> bool:
        return JUDGED[self.task].held_out

    @property
    def margin(self) -> float:
        return JUDGED[self.task].margin

    @property
    def seeds(self) -> int:
        return _SEEDS.get(self.task, _MOST_SEEDS)


# Of the small tasks at the best rates that the studies of formats have found.
_SMALL: Final = (
    Setting("text", "sgd", 0.5),
    Setting("text", "adamw", 0.02),
    Setting("text", "muon", 0.05),
    Setting("text", "adamw", 0.02, workers=2),
    Setting("text", "adamw", 0.02, workers=16),
    Setting("colouring", "nesterov", 0.02),
    Setting("colouring", "adamw", 0.002),
    Setting("denoising", "adamw", 0.004),
)
_LARGE_RATES: Final = {"adamw95": (0.0005, 0.001, 0.002), "muon": (0.01, 0.02, 0.04)}


def rate_runs() -> list[Run]:
    """To find the best rates of exact training of the large task."""
    return [
        Run("large gpt", optimizer, lr, EXACT_ARM, _RATES_SEED)
        for optimizer, rates in _LARGE_RATES.items()
        for lr in rates
    ]


def settings_of(rates: Mapping[Run, float]) -> list[Setting]:
    """All whose rate is known. `rates`: losses of `rate_runs`."""
    found = list(_SMALL)
    for optimizer in _LARGE_RATES:
        losses = {run: loss for run, loss in rates.items() if run.optimizer == optimizer}
        if losses:
            found.append(Setting.of(min(losses, key=losses.__getitem__)))
    return found


def study_runs(settings: Sequence[Setting]) -> list[Run]:
    """Seed by seed, so that a study which is cut short has some of everything."""
    return [
        Run(s.task, s.optimizer, s.lr, arm, seed, s.workers)
        for seed in range(1, _MOST_SEEDS + 1)
        for s in settings
        if seed <= s.seeds
        for arm in ARMS
    ]


def exact_of(run: Run) -> Run:
    """What it is compared with."""
    return replace(run, arm=EXACT_ARM)
