"""The fewest machines, by CP-SAT: the integer programme from job to part to machine.

A job has one of its offers. Ranks of one that stays together are on one machine; those of one that
is spread are divided over machines of its kind. The link of a machine serves one such job, so that
each is as fast as it was predicted to be. A machine's ranks and memory limit what is on it. The
goal is the number of jobs without room, then of machines in use, then the rent of an hour.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from deft_horovod.capacity.consolidate.best_fit import best_fit
from deft_horovod.capacity.consolidate.first_fit import first_fit_packing
from deft_horovod.capacity.consolidate.packing import Lodging, Packing, require_packing
from deft_horovod.capacity.consolidate.tenants import Offer, Tenants
from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.schedule.budget import NEAR, Budget
from deft_horovod.solver.cp_sat import cp_model


@dataclass(frozen=True)
class Packed:
    """A packing, and below how many machines none with as many jobs can be."""

    packing: Packing
    start: Packing  # that of the better heuristic
    bound: int | None  # None: more jobs might find room

    @property
    def gap(self) -> float | None:
        machines = self.packing.machines
        if self.bound is None:
            return None
        return (machines - self.bound) / machines if machines else 0.0


def packed(tenants: Tenants, budget: Budget | None = None) -> Packed:
    """Never worse than the heuristics."""
    budget = budget or Budget()
    start = min((best_fit(tenants), first_fit_packing(tenants)), key=lambda one: one.cost)
    model = _PackingModel(tenants)
    model.hint(start)
    model.minimize()
    solver = budget.solver()
    status = solver.solve(model.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Packed(require_packing(start), start, None)
    best = min(start, model.packing(solver), key=lambda one: one.cost)
    return Packed(require_packing(best), start, model.bound(best, solver.best_objective_bound))


class _PackingModel:
    def __init__(self, tenants: Tenants) -> None:
        self.tenants, self.model = tenants, cp_model.CpModel()
        self._units = [
            Unit(index, number)
            for index, kind in enumerate(tenants.kinds)
            for number in range(kind.count)
        ]
        self._chosen: list[dict[Offer, cp_model.IntVar]] = []
        self._out: list[cp_model.IntVar] = []
        self._ranks: dict[tuple[int, Unit], cp_model.LinearExprT] = {}
        self._there: dict[tuple[int, Offer | None, Unit], cp_model.IntVar] = {}
        self._parts: dict[tuple[int, Unit], cp_model.IntVar] = {}
        for index in range(len(tenants.tenants)):
            self._add_tenant(index)
        self._used = {unit: self._limit(unit) for unit in self._units}
        for unit in self._units:
            if unit.number:
                before = self._used[Unit(unit.kind, unit.number - 1)]
                self.model.add_implication(self._used[unit], before)

    def minimize(self) -> None:
        kinds = self.tenants.kinds
        price = sum(kinds[unit.kind].price_parts * used for unit, used in self._used.items())
        used = self._dear * sum(self._used.values())
        out = self._dear * (len(self._units) + 1) * sum(self._out)
        self.model.minimize(price + used + out)

    @property
    def _dear(self) -> int:
        """One machine is worse than any rent."""
        return 1 + sum(self.tenants.kinds[unit.kind].price_parts for unit in self._units)

    def bound(self, best: Packing, objective: float) -> int | None:
        """Of machines, from that of the objective."""
        least = ceil(objective - NEAR) // self._dear
        out = len(best.without_room) * (len(self._units) + 1)
        # Fewer jobs without room would have made it smaller than that.
        return None if least < out else min(best.machines, least - out)

    def hint(self, packing: Packing) -> None:
        placed = {lodging.tenant: lodging for lodging in packing.lodgings}
        for index, chosen in enumerate(self._chosen):
            lodging = placed.get(index)
            self.model.add_hint(self._out[index], lodging is None)
            for offer, one in chosen.items():
                self.model.add_hint(one, lodging is not None and lodging.offer == offer)
        for (index, of, unit), there in self._there.items():
            lodging = placed.get(index)
            ranks = dict(lodging.parts).get(unit, 0) if lodging else 0
            spread = lodging is not None and not lodging.offer.together
            same = lodging is not None and (spread if of is None else lodging.offer == of)
            self.model.add_hint(there, bool(ranks) and same)
            if of is None:
                self.model.add_hint(self._parts[index, unit], ranks if spread else 0)
        for unit, used in self._used.items():
            self.model.add_hint(used, unit in packing.by_unit)

    def packing(self, solver: cp_model.CpSolver) -> Packing:
        lodgings = []
        for index, chosen in enumerate(self._chosen):
            for offer, one in chosen.items():
                if solver.boolean_value(one):
                    parts = [
                        (unit, self._found(solver, index, offer, unit)) for unit in self._units
                    ]
                    placed = tuple((unit, ranks) for unit, ranks in parts if ranks)
                    lodgings.append(Lodging(index, offer, placed))
        return Packing(self.tenants, tuple(lodgings))

    def _found(self, solver: cp_model.CpSolver, index: int, offer: Offer, unit: Unit) -> int:
        if unit.kind != offer.kind:
            return 0
        if not offer.together:
            return int(solver.value(self._parts[index, unit]))
        return offer.ranks if solver.boolean_value(self._there[index, offer, unit]) else 0

    def _add_tenant(self, index: int) -> None:
        tenant, model = self.tenants.tenants[index], self.model
        out = model.new_bool_var("")
        chosen = {offer: model.new_bool_var("") for offer in tenant.offers}
        model.add_exactly_one([out, *chosen.values()])
        for offer, one in chosen.items():
            if offer.together:
                there = []
                for unit in self._of_kind(offer.kind):
                    self._there[index, offer, unit] = model.new_bool_var("")
                    there.append(self._there[index, offer, unit])
                model.add(sum(there) == one)
        for kind in sorted({offer.kind for offer in tenant.offers if not offer.together}):
            spread = [
                (offer, one)
                for offer, one in chosen.items()
                if offer.kind == kind and not offer.together
            ]
            parts = []
            for unit in self._of_kind(kind):
                there_too, room = model.new_bool_var(""), self.tenants.room(tenant, kind)
                part = model.new_int_var(0, room, "")
                model.add(part >= there_too)
                model.add(part <= room * there_too)
                self._there[index, None, unit], self._parts[index, unit] = there_too, part
                parts.append(part)
            model.add(sum(parts) == sum(offer.ranks * one for offer, one in spread))
        self._out.append(out)
        self._chosen.append(chosen)

    def _of_kind(self, kind: int) -> list[Unit]:
        return [unit for unit in self._units if unit.kind == kind]

    def _limit(self, unit: Unit) -> cp_model.IntVar:
        """Whether a machine is used."""
        kind, used = self.tenants.kinds[unit.kind], self.model.new_bool_var("")
        ranks: list[tuple[int, cp_model.LinearExprT]] = []
        links = []
        for (index, offer, place), there in self._there.items():
            if place == unit:
                self.model.add_implication(there, used)
                taken = self._parts[index, unit] if offer is None else offer.ranks * there
                ranks.append((index, taken))
                links += [there] if offer is None else []
        self.model.add(sum(taken for _, taken in ranks) <= kind.ranks * used)
        memory = sum(self.tenants.tenants[i].memory_bytes * taken for i, taken in ranks)
        self.model.add(memory <= kind.memory_bytes * used)
        if links:
            self.model.add_at_most_one(links)
        return used
