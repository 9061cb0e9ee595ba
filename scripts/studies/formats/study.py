"""Which runs the study of wire formats is made of. Pure. docs/studies/formats/protocol.md says why;
what is fixed there is not changed once runs of `study_runs` were looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.base.wire_format import EXACT, WireFormat
from scripts.studies.formats.training import Run

# The coarsest formats of `accuracy` "equal" and "fast".
ARMS: Final[Sequence[WireFormat]] = ("int8", "int4")
MARGINS: Final[Mapping[str, float]] = {"text": 0.01, "photos": 0.02}
LEVEL: Final = 0.05
POWER: Final = 0.9
# The pilot tells how much two trainings differ that are as good as the same.
PILOT_FORMAT: Final[WireFormat] = "f16"
PILOT_SEEDS: Final = (101, 102, 103)
RATES: Final[Mapping[str, Sequence[float]]] = {
    "sgd": (0.02, 0.05, 0.1, 0.2, 0.5),
    "adamw": (0.001, 0.002, 0.005, 0.01, 0.02),
    "muon": (0.01, 0.02, 0.05, 0.1),
}
_RATES_SEED: Final = 100


@dataclass(frozen=True)
class Setting:
    """What the arms of one comparison share."""

    task: str
    optimizer: str
    lr: float

    @classmethod
    def of(cls, run: Run) -> Setting:
        return cls(run.task, run.optimizer, run.lr)

    @property
    def title(self) -> str:
        return f"{self.task}, {self.optimizer}, {self.lr:g}"


def rate_runs(tasks: Iterable[str] = MARGINS) -> list[Run]:
    """To find the best rate of exact training."""
    return [
        Run(task, optimizer, lr, _RATES_SEED)
        for task in tasks
        for optimizer, rates in RATES.items()
        for lr in rates
    ]


def best_settings(losses: Mapping[Run, float]) -> list[Setting]:
    """Each optimizer at its best rate, and at twice that."""
    best: dict[tuple[str, str], tuple[float, float]] = {}
    for run, loss in losses.items():
        key = run.task, run.optimizer
        best[key] = min(best.get(key, (float("inf"), run.lr)), (loss, run.lr))
    return [
        Setting(task, optimizer, factor * lr)
        for (task, optimizer), (_, lr) in best.items()
        for factor in (1.0, 2.0)
    ]


def pilot_runs(settings: Sequence[Setting]) -> list[Run]:
    """At the best rates, with seeds of their own."""
    return [
        Run(s.task, s.optimizer, s.lr, seed, one)
        for s in settings[::2]
        for seed in PILOT_SEEDS
        for one in (EXACT, PILOT_FORMAT)
    ]


def study_runs(settings: Sequence[Setting], seeds: Mapping[str, int]) -> list[Run]:
    """Seed by seed, so that a study which is cut short has some of everything. `seeds`: how many,
    by task."""
    return [
        Run(s.task, s.optimizer, s.lr, seed, one)
        for seed in range(1, max(seeds.values(), default=0) + 1)
        for s in settings
        if seed <= seeds[s.task]
        for one in (EXACT, *ARMS)
    ]
