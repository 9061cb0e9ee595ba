"""Which runs the studies of wire formats are made of. Pure. docs/studies/formats/protocol*.md say
why; what is fixed there is not changed once runs of `study_runs` were looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.base.wire_format import EXACT, WireFormat
from scripts.studies.formats.training import Run

LEVEL: Final = 0.05
POWER: Final = 0.9
# The pilot tells how much two trainings differ that are as good as the same.
PILOT_FORMAT: Final[WireFormat] = "f16"
_RATES_SEED: Final = 100
_SMALL_RATES: Final[Mapping[str, Sequence[float]]] = {
    "sgd": (0.02, 0.05, 0.1, 0.2, 0.5),
    "adamw": (0.001, 0.002, 0.005, 0.01, 0.02),
    "muon": (0.01, 0.02, 0.05, 0.1),
}


@dataclass(frozen=True)
class Study:
    """What is compared: each of `arms` with exact training, of each task (those of `margins`) with
    each of its optimizers at its best rate and at multiples of it."""

    name: str
    margins: Mapping[str, float]
    rates: Mapping[str, Mapping[str, Sequence[float]]]  # that are tried, by task and optimizer
    arms: Sequence[WireFormat]
    factors: Sequence[float]
    seeds: int = 0  # of each task; 0: as many as its pilot says
    first_seed: int = 1
    pilot_seeds: Sequence[int] = (101, 102, 103)
    rates_of: str = ""  # the study whose best rates are taken; empty: its own

    @property
    def prefix(self) -> str:
        """Of its files."""
        return _prefix(self.name)

    @property
    def rates_prefix(self) -> str:
        """Of the file with the rates that were tried."""
        return _prefix(self.rates_of or self.name)


def _prefix(name: str) -> str:
    return "" if name == "small" else f"{name}-"


# The coarsest formats of `accuracy` "equal" and "fast".
SMALL: Final = Study(
    name="small",
    margins={"text": 0.01, "photos": 0.02},
    rates={"text": _SMALL_RATES, "photos": _SMALL_RATES},
    arms=("int8", "int4"),
    factors=(1.0, 2.0),
)
LARGER: Final = Study(
    name="larger",
    margins={"gpt": 0.01, "resnet": 0.02, "fine-tuning": 0.01},
    rates={
        "gpt": {"adamw95": (0.0005, 0.001, 0.002), "muon": (0.005, 0.01, 0.02)},
        "resnet": {"nesterov": (0.05, 0.1, 0.2), "adamw": (0.001, 0.002, 0.004)},
        "fine-tuning": {"adamw": (0.0001, 0.0003, 0.001)},
    },
    arms=("int8",),
    factors=(1.0,),
    seeds=8,
)
# The small tasks again, with as many seeds as the first study says that they need.
REPEATED: Final = Study(
    name="repeated",
    margins=SMALL.margins,
    rates=SMALL.rates,
    arms=("int8",),
    factors=(1.0, 0.5),
    seeds=32,
    first_seed=201,
    rates_of=SMALL.name,
)
# Images, with a rate that falls to nothing.
IMAGES: Final = Study(
    name="images",
    margins={"photographs": 0.02, "denoising": 0.02},
    rates={
        "photographs": {"nesterov": (0.02, 0.05, 0.1), "adamw": (0.001, 0.002, 0.004)},
        "denoising": {
            "nesterov": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
            "adamw": (0.002, 0.004, 0.008),
        },
    },
    arms=("int8",),
    factors=(1.0,),
    seeds=8,
    first_seed=301,
)
# Images that are known to repeat well enough.
COLOURS: Final = Study(
    name="colours",
    margins={"colouring": 0.02},
    rates={"colouring": {"nesterov": (0.02, 0.05, 0.1), "adamw": (0.001, 0.002, 0.004)}},
    arms=("int8",),
    factors=(1.0,),
    seeds=8,
    first_seed=401,
    pilot_seeds=(111, 112, 113, 114, 115),
)
# What scripts do otherwise: rates that fall in steps, several backward passes, another optimizer.
HABITS: Final = Study(
    name="habits",
    margins={"dropping": 0.01, "accumulating": 0.01},
    rates={
        "dropping": {
            "adamw": (0.005, 0.01, 0.02),
            "adafactor": (0.01, 0.02, 0.05, 0.1, 0.2),
        },
        "accumulating": {"adamw": (0.005, 0.01, 0.02)},
    },
    arms=("int8",),
    factors=(1.0,),
    seeds=16,
    first_seed=501,
)
STUDIES: Final = {study.name: study for study in (SMALL, LARGER, REPEATED, IMAGES, COLOURS, HABITS)}
DECIDING: Final = (REPEATED, LARGER, IMAGES, COLOURS)  # which optimizers get formats by default
# Tasks whose trainings differ too much to decide anything, by those of later studies.
REPLACED: Final = ("resnet", "photographs")
# Those that every class needs, as far as it has them.
LARGER_TASKS: Final = tuple(
    task for study in (LARGER, IMAGES, COLOURS) for task in study.margins if task not in REPLACED
)


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


def rate_runs(study: Study = SMALL) -> list[Run]:
    """To find the best rate of exact training."""
    return [
        Run(task, optimizer, lr, _RATES_SEED)
        for task in study.margins
        for optimizer, rates in study.rates[task].items()
        for lr in rates
    ]


def best_settings(losses: Mapping[Run, float], study: Study = SMALL) -> list[Setting]:
    """Each optimizer at its best rate, and at the multiples of that."""
    best: dict[tuple[str, str], tuple[float, float]] = {}
    for run, loss in losses.items():
        key = run.task, run.optimizer
        best[key] = min(best.get(key, (float("inf"), run.lr)), (loss, run.lr))
    return [
        Setting(task, optimizer, factor * lr)
        for (task, optimizer), (_, lr) in best.items()
        for factor in study.factors
    ]


def pilot_runs(settings: Sequence[Setting], study: Study = SMALL) -> list[Run]:
    """At the best rates, with seeds of their own."""
    return [
        Run(s.task, s.optimizer, s.lr, seed, one)
        for s in settings[:: len(study.factors)]
        for seed in study.pilot_seeds
        for one in (EXACT, PILOT_FORMAT)
    ]


def study_runs(
    settings: Sequence[Setting], seeds: Mapping[str, int], study: Study = SMALL
) -> list[Run]:
    """Seed by seed, so that a study which is cut short has some of everything. `seeds`: how many,
    by task."""
    return [
        Run(s.task, s.optimizer, s.lr, seed, one)
        for seed in range(study.first_seed, study.first_seed + max(seeds.values(), default=0))
        for s in settings
        if seed < study.first_seed + seeds[s.task]
        for one in (EXACT, *study.arms)
    ]
