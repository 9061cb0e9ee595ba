"""Comparison: what the steps of a job took without us and with us, taking turns."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from types import MappingProxyType
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import Self

from deft_horovod.base.record import Flag, Index, Microseconds, Name, Part, Record
from deft_horovod.errors import PlanError, explain
from deft_horovod.plan import Plan
from deft_horovod.profile import Profile

STOCK: Final = "stock"
DDP: Final = "ddp"
# What jobs do without us, for people: those of Horovod, and those of torch.distributed.
BASELINES: Final[Mapping[str, str]] = MappingProxyType({STOCK: "stock Horovod", DDP: "DDP's way"})

_Round = Annotated[tuple[Microseconds, ...], Field(min_length=1)]


class Arm(Part):
    """One of those that took turns."""

    policy: Name
    late: Flag = False  # whether its plan might apply updates late
    # Of every step in every round the time of the slowest rank.
    rounds_us: Annotated[tuple[_Round, ...], Field(min_length=1)]
    plan: Plan | None = None  # None: Horovod's own calls

    @property
    def name(self) -> str:
        """For people: the same policy may take part with and without late updates."""
        return f"{self.policy} (late)" if self.late else self.policy

    @property
    def step_us(self) -> float:
        """The median of all rounds."""
        return median(us for one in self.rounds_us for us in one)

    @property
    def spread_us(self) -> tuple[float, float]:
        """Four of five steps lie between these."""
        low, high = np.quantile([us for one in self.rounds_us for us in one], (0.1, 0.9))
        return float(low), float(high)


class Comparison(Record):
    """Who was compared, and who is to be taken."""

    version: Literal[1] = 1
    policy: Name  # that was asked for
    chosen: Index  # of the arms; 0: the baseline is kept
    profile: Profile
    arms: Annotated[tuple[Arm, ...], Field(min_length=1)]

    @property
    def baseline(self) -> Arm:
        """What the job has today."""
        return self.arms[0]

    @property
    def baseline_name(self) -> str:
        """The same, for people."""
        return BASELINES[self.baseline.policy]

    @property
    def ours(self) -> Arm:
        """What it would have."""
        return self.arms[self.chosen]

    def speedup(self, arm: Arm) -> float:
        """How many times as fast as the baseline, by the medians."""
        return _ratio(self.baseline.step_us, arm.step_us)

    def speedups(self, arm: Arm) -> tuple[float, ...]:
        """The same round by round, each against the baseline's steps of its own round."""
        pairs = zip(self.baseline.rounds_us, arm.rounds_us, strict=True)
        return tuple(_ratio(median(before), median(now)) for before, now in pairs)

    def exposed_us(self, arm: Arm) -> float:
        """Time of a step in which nothing is computed."""
        return max(0.0, arm.step_us - self.profile.compute_us)

    def exposed_share(self, arm: Arm) -> float:
        """The same as a share of the step."""
        return self.exposed_us(arm) / arm.step_us if arm.step_us > 0.0 else 0.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.baseline.policy not in BASELINES or self.chosen >= len(self.arms):
            raise PlanError(
                explain(
                    "comparison rule 'arms': stock Horovod, or ddp, has to be the first of those "
                    "compared, and one of them the chosen one",
                    observed=f"{[arm.name for arm in self.arms]}, of which number {self.chosen}",
                )
            )
        rounds = {len(arm.rounds_us) for arm in self.arms}
        if len(rounds) > 1:
            raise PlanError(
                explain(
                    "comparison rule 'rounds': all have to take part in all rounds",
                    observed=f"{sorted(rounds)} rounds",
                    expected="the same number for each",
                )
            )
        return self


def _ratio(before: float, now: float) -> float:
    return before / now if now > 0.0 else 1.0
