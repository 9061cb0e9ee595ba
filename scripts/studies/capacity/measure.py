"""What each method does with an instance."""

from __future__ import annotations

import time
from typing import Any

from deft_horovod.capacity.consolidate.best_fit import best_fit
from deft_horovod.capacity.consolidate.exact import packed
from deft_horovod.capacity.consolidate.first_fit import first_fit_packing
from deft_horovod.capacity.consolidate.packing import Packing
from deft_horovod.capacity.consolidate.tenants import Tenants
from deft_horovod.capacity.problem.demand import Demand
from deft_horovod.capacity.problem.schedule import Schedule
from deft_horovod.capacity.schedule.budget import Budget
from deft_horovod.capacity.schedule.exact import solved
from deft_horovod.capacity.schedule.first_fit import first_fit
from deft_horovod.capacity.schedule.hybrid import hybrid


def schedules(demand: Demand, effort: float) -> dict[str, Any]:
    """Rent, missed jobs and use of each method, and the bound."""
    began_s = time.perf_counter()
    found = solved(demand, Budget(effort))
    took_s = time.perf_counter() - began_s
    return {
        "exact": _of_schedule(found.schedule),
        "hybrid": _of_schedule(hybrid(demand)),
        "first_fit": _of_schedule(first_fit(demand)),
        "bound": {"missed": found.bound.missed, "rent": round(float(found.bound.rent), 6)},
        "gap": found.gap,
        "took_s": round(took_s, 2),
    }


def _of_schedule(schedule: Schedule) -> dict[str, Any]:
    return {
        "missed": len(schedule.missed),
        "rent": round(float(schedule.rent), 6),
        "own_use": round(schedule.own_use(), 4),
        "paid_use": round(schedule.paid_use(), 4),
        "whole_use": round(whole_use(schedule), 4),
    }


def whole_use(schedule: Schedule) -> float:
    """Of all ranks of machines in use, own ones up to their last job, rented ones while paid."""
    kinds = schedule.demand.kinds
    there_s = sum(
        kinds[unit.kind].ranks * max(one.end_s for one in placements)
        for unit, placements in schedule.by_unit.items()
        if kinds[unit.kind].is_own
    )
    for rental in schedule.rentals:
        kind = kinds[rental.unit.kind]
        there_s += kind.billed_units(rental.to_s - rental.from_s) * kind.billed_s * kind.ranks
    busy_s = sum(one.way.ranks * one.way.duration_s for one in schedule.placements)
    return busy_s / there_s if there_s else 0.0


def packings(tenants: Tenants, effort: float) -> dict[str, Any]:
    """Machines of each method; `ready`: the fewest for virtual machines that are ready."""
    began_s = time.perf_counter()
    found = packed(tenants, Budget(effort))
    took_s = time.perf_counter() - began_s
    ready = packed(tenants.ready(), Budget(effort))
    return {
        "exact": _of_packing(found.packing),
        "best_fit": _of_packing(best_fit(tenants)),
        "ready": _of_packing(ready.packing),
        "first_fit": _of_packing(first_fit_packing(tenants)),
        "bound": found.bound,
        "ready_bound": ready.bound,
        "took_s": round(took_s, 2),
    }


def _of_packing(packing: Packing) -> dict[str, Any]:
    return {"machines": packing.machines, "without_room": len(packing.without_room)}
