"""The installer: makes what is at work on the gradients of one optimizer, complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from deft_horovod.runtime.correct.correction import correction_of, possible
from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.decide.control import Control
from deft_horovod.runtime.decide.planning import Assignment
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.measure.step_clock import StepClock
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.reduce.gates import gates_of
from deft_horovod.runtime.reduce.installed import Installed
from deft_horovod.runtime.reduce.loss_scale import LossScales
from deft_horovod.runtime.reduce.merging import merging
from deft_horovod.runtime.reduce.planned import PlannedReducer, Route, Sent
from deft_horovod.runtime.reduce.rests import Rests
from deft_horovod.runtime.reduce.stock import StockHooks, StockReducer


@dataclass(frozen=True)
class Installer:
    """Of one optimizer."""

    brief: Brief
    inner: torch.optim.Optimizer
    scales: LossScales
    clock: StepClock
    control: Control
    rests: Rests = field(default_factory=Rests)

    def correction(self, observer: Observer) -> str:
        """What can be done about late updates."""
        return possible(self.brief.correction, observer.roots)

    def install(
        self,
        assignment: Assignment,
        observer: Observer,
        number: int | None,
        stock: StockHooks | None,
        sent: tuple[Sent, ...] = (),
    ) -> Installed:
        """The assignment, from the beginning of its cycle; gradients flow into it from now on.
        `sent`: in cycles of this plan before."""
        if assignment.plan is None:
            return Installed(stock=stock)
        members, correction = assignment.planned, self.correction(observer)
        planned = PlannedReducer(
            members,
            assignment.plan,
            # The same plan has the same names whenever it comes: Horovod remembers 1024 of them.
            self._route(f"deft.{number}.{assignment.plan.hash()[:8]}", correction),
            self.clock,
            watch=self.control.follow(members, assignment.plan, correction),
            correct=lambda it: correction_of(self.inner, it, observer.roots, self.scales),
            sent=sent,
            rests=self.rests,
        )
        observer.send_to(planned.session, members)
        return Installed(planned, gates_of(self.inner, planned, observer), stock)

    def _route(self, prefix: str, correction: str) -> Route:
        brief, opened = self.brief, self.control.links.opened
        how = merging(self.inner, brief.config.merge, brief.correction)
        return Route(brief.reduction, opened, prefix, brief.config.deadline_s, how, correction)

    def stock_hooks(
        self, members: Sequence[NamedParameter], number: int | None, passes_per_step: int
    ) -> StockHooks | None:
        """For those that no plan carries."""
        if not members:
            return None
        groups = self.brief.groups.of(members)
        reducer = self.stock_reducer(members, f"deft.{number}.stock", groups, self.rests)
        return StockHooks(reducer, passes_per_step)

    def stock_reducer(
        self,
        members: Sequence[NamedParameter],
        prefix: str,
        groups: Sequence[Sequence[int]] = (),
        rests: Rests | None = None,
    ) -> StockReducer:
        """For one step or for many; see :class:`StockReducer`."""
        brief = self.brief
        link, deadline_s = self.control.links.unplanned, brief.config.deadline_s
        return StockReducer(members, brief.reduction, prefix, deadline_s, groups, rests, link)
