"""What is told of a schedule: jobs, rented machines, what was missed; beside it stock Horovod."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from deft_horovod.capacity.answer.units import units_text
from deft_horovod.capacity.problem.demand import Demand
from deft_horovod.capacity.schedule.exact import Found
from deft_horovod.capacity.schedule.remedy import Remedy, remedies


@dataclass(frozen=True)
class JobRow:
    """A job that is placed."""

    job: str
    machines: str
    ranks: int
    from_s: int
    to_s: int
    deadline_s: int

    @property
    def slack_s(self) -> int:
        return self.deadline_s - self.to_s


@dataclass(frozen=True)
class RentRow:
    """A machine that is rented."""

    machine: str
    from_s: int
    to_s: int
    rent: float


@dataclass(frozen=True)
class MissedRow:
    """A job that is not, with what would help. None: nothing of that kind would."""

    job: str
    remedies: tuple[Remedy, ...]


@dataclass(frozen=True)
class Told:
    """One schedule."""

    found: Found

    @property
    def demand(self) -> Demand:
        return self.found.schedule.demand

    @property
    def rent(self) -> float:
        return float(self.found.schedule.rent)

    @cached_property
    def jobs(self) -> list[JobRow]:
        works = self.demand.works
        return [
            JobRow(
                job=works[one.work].name,
                machines=units_text(self.demand.kinds, one.units),
                ranks=one.way.ranks,
                from_s=one.start_s,
                to_s=one.end_s,
                deadline_s=works[one.work].deadline_s,
            )
            for one in self.found.schedule.placements
        ]

    @cached_property
    def rented(self) -> list[RentRow]:
        return [
            RentRow(
                units_text(self.demand.kinds, (one.unit,)), one.from_s, one.to_s, float(one.rent)
            )
            for one in self.found.schedule.rentals
        ]

    @cached_property
    def missed(self) -> list[MissedRow]:
        schedule = self.found.schedule
        return [
            MissedRow(self.demand.works[work].name, tuple(remedies(schedule, work)))
            for work in schedule.missed
        ]

    def remedy_data(self, remedy: Remedy) -> dict[str, Any]:
        kind = None if remedy.kind is None else self.demand.kinds[remedy.kind].name
        return {
            "deadline_s": remedy.deadline_s,
            "machine": kind,
            "machines": remedy.machines,
            "rent": float(remedy.rent),
        }

    def to_data(self) -> dict[str, Any]:
        schedule = self.found.schedule
        return {
            "rent": self.rent,
            "rent_bound": float(self.found.bound.rent),
            "gap": self.found.gap,
            "heuristic_rent": float(self.found.start.rent),
            "heuristic_missed": len(self.found.start.missed),
            "own_use": schedule.own_use(),
            "paid_use": schedule.paid_use(),
            "jobs": [{**asdict(row), "slack_s": row.slack_s} for row in self.jobs],
            "rented": [asdict(row) for row in self.rented],
            "missed": [
                {"job": row.job, "remedies": [self.remedy_data(one) for one in row.remedies]}
                for row in self.missed
            ],
        }


@dataclass(frozen=True)
class CapacityAnswer:
    """With our plans, and, if it was asked for, with stock Horovod."""

    source: str
    ours: Told
    stock: Told | None = None

    @property
    def saved(self) -> float | None:
        """Of the rent with stock Horovod. None: not asked for, or other jobs are missed."""
        if self.stock is None or len(self.stock.missed) != len(self.ours.missed):
            return None
        return self.stock.rent - self.ours.rent

    def to_data(self) -> dict[str, Any]:
        return {
            "version": 1,
            "source": self.source,
            "ours": self.ours.to_data(),
            "stock": None if self.stock is None else self.stock.to_data(),
            "saved": self.saved,
        }
