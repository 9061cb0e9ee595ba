"""The engine of one optimizer: observes, agrees, plans, reduces.

The first step only observes. At its end the ranks compare what has to be equal, the lowest rank
plans, and every rank runs that plan. When something changes (a parameter is frozen, a group is
added, the policy has learnt more), a rank asks for attention in the headers of its gradients; all
ranks read the same answer at the same boundary and plan anew there, with nothing in flight.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import horovod
import horovod.torch as stock
import torch

import deft_horovod
from deft_horovod.profile import LinkCost
from deft_horovod.runtime.agreement import Agreement
from deft_horovod.runtime.gates import Gates
from deft_horovod.runtime.members import Member
from deft_horovod.runtime.observation import Observer
from deft_horovod.runtime.partial_update import options_of
from deft_horovod.runtime.planned_reducer import PlannedReducer
from deft_horovod.runtime.planning import Assignment, Task, assign, facts_of
from deft_horovod.runtime.stats import StepClock, step_stats
from deft_horovod.runtime.stock_reducer import StockHooks, StockReducer
from deft_horovod.runtime.world import world
from deft_horovod.solver.link_cost import Sample, fit_link

_LOG: Final = logging.getLogger("deft_horovod")


class Engine:
    """Reduces the gradients of one optimizer, step by step."""

    def __init__(
        self,
        inner: torch.optim.Optimizer,
        members: Callable[[], tuple[Member, ...]],
        task: Task,
        passes_per_step: int,
    ) -> None:
        self.clock = StepClock()
        self.task = task
        self.passes_per_step = passes_per_step
        self.planned: PlannedReducer | None = None
        self.epoch = 0  # counts the plans of this optimizer
        self._inner = inner
        self._members = members
        self._number: int | None = None  # among the optimizers of the job, once agreed
        self._stock: StockHooks | None = None
        self._gates: Gates | None = None
        self._link: LinkCost | None = None
        self._planned_at_step = 0
        self._observer = self._observe()
        world().engines.add(self)

    # --- the step ----------------------------------------------------------------------------
    @property
    def pending(self) -> bool:
        """Whether a gradient came since the last boundary."""
        return self._observer.collector.any()

    @property
    def complete(self) -> bool:
        """Whether some gradient of this step has had all its backward passes."""
        return self._observer.collector.complete()

    def set_passes_per_step(self, passes: int) -> None:
        """Counts so many backward passes per step from now on."""
        self.passes_per_step = passes
        self._observer.collector.set_passes_per_step(passes)
        if self._stock is not None:
            self._stock.passes_per_step = passes

    def synchronize(self, hold_gated: bool) -> None:
        """Ends the step: averages are in ``p.grad``, but for what may wait for its gate."""
        self.open_gates()
        if self._number is None:
            self._observer.end_step()
            if not self._start():
                # Somebody is in join(): no plan can be agreed on, Horovod's own calls still work.
                self._reduce_now(self._observer.members)
                return
        changed = self._observer.outdated(self._members())
        held = self._finish(hold_gated and self._gates is not None)
        self._observer.end_step()
        strays = self._strays(changed)
        self._reduce_now(strays)
        if changed or strays:
            self._ask_for_attention()
        if self._gates is not None:
            self._gates.hold(held, options_of(self._inner))
        self._replan_if_due(changed)
        self.clock.boundary()

    def open_gates(self) -> None:
        """Applies what is held back."""
        if self._gates is not None:
            self._gates.open_all()

    def rejoin(self) -> None:
        """All ranks have come out of ``join()``. Those that left early have not read what the last
        headers asked for, so nobody acts on it; whoever asked goes on asking in the next step."""
        if self.planned is not None:
            self.planned.take_attention()

    def discard(self) -> None:
        """Throws away the gradients of the step that is under way, on all ranks alike."""
        if self._number is not None and self.complete:
            self._finish(hold_gated=False)
        self._observer.collector.reset()
        self.clock.boundary()

    def recover(self) -> None:
        """Other parameters are about to be loaded: nothing from before may reach them."""
        failed = self.planned is not None and self.planned.session.failure() is not None
        if not failed:
            try:
                self.open_gates()
                if self.pending:
                    self.discard()
            except stock.HorovodInternalError:  # a peer died; whoever loads now recovers from it
                failed = True
        if failed:
            self.forget()

    def forget(self) -> None:
        """Horovod is new, or its queue failed: what was agreed and what is in flight is void."""
        self._drop_reducers()
        self._number = None
        self.epoch = 0  # it is part of names, and a rank that has just been started begins at 0
        self._observer.detach()
        self._observer = self._observe()

    def stats(self) -> dict[str, Any]:
        """Times, bytes and messages so far."""
        return {"policy": self.task.policy.name, "plans": self.epoch} | step_stats(
            self.clock, self.planned
        )

    def facts(self) -> dict[str, Any]:
        """What has to be equal on all ranks before anything travels."""
        return {
            "versions": {
                "deft_horovod": deft_horovod.__version__,
                "horovod": horovod.__version__,
                "torch": torch.__version__,
            },
            "policy": self.task.policy.name,
            "config": self.task.config.model_dump(),
            "channel": self.task.channel.facts(),
            "backward_passes_per_step": self.passes_per_step,
            "groups": self.task.groups.of(self._members()),
            "parameters": facts_of(self._members()),
        }

    # --- reducing ----------------------------------------------------------------------------
    def _finish(self, hold_gated: bool) -> list[Any]:
        held = self.planned.finish(hold_gated) if self.planned is not None else []
        if self._stock is not None:
            with self.clock.exposed():
                self._stock.reducer.finish()
            self._stock.reset()
        return held

    def _reduce_now(self, members: Sequence[Member]) -> None:
        """Without a plan: Horovod's own calls, all at once."""
        if members:
            number = "x" if self._number is None else self._number
            prefix = f"deft.{number}.now"
            deadline_s = self.task.config.deadline_s
            StockReducer(members, self.task.channel, prefix, deadline_s).finish()

    def _strays(self, changed: bool) -> list[Member]:
        """Gradients that no plan carries yet: of members that train only by now, and sparse ones
        of members that were dense so far."""
        strays = []
        if self.planned is not None:
            planned = {id(m.tensor) for m in self.planned.members}
            sparse = zip(self._observer.members, self._observer.sparse(), strict=True)
            strays = [m for m, is_sparse in sparse if is_sparse and id(m.tensor) in planned]
        if changed:
            known = {id(m.tensor) for m in self._observer.members}
            strays += [
                m
                for m in self._members()
                if m.tensor.requires_grad
                and m.tensor.grad is not None
                and id(m.tensor) not in known
            ]
        return strays

    # --- planning ----------------------------------------------------------------------------
    def _observe(self) -> Observer:
        gates = self.task.policy.gates
        return Observer(self._members(), self.passes_per_step, watch_forward=gates)

    def _agreement(self) -> Agreement:
        return Agreement(self.task.channel.process_set, self.task.config.deadline_s)

    def _start(self) -> bool:
        agreement = self._agreement()
        if not agreement.everyone_here():
            return False
        agreement.require_equal(self.facts())
        self._number = world().take_number(self.task.channel.process_set.process_set_id)
        self._adopt(assign(agreement, self.task, self._observer, self._link))
        return True

    def _ask_for_attention(self) -> None:
        if self.planned is not None:
            self.planned.session.request_attention()

    def _replan_if_due(self, changed: bool) -> None:
        after = self.task.policy.replan_after_steps
        due = after is not None and self.epoch == 1
        if due and self.clock.steps - self._planned_at_step >= (after or 0):
            self._ask_for_attention()
        # Without a plan there are no headers to ask in; the program is the same on all ranks.
        asked = changed if self.planned is None else self.planned.take_attention()
        if not asked:
            return
        self.open_gates()
        agreement = self._agreement()
        if not agreement.everyone_here():
            return  # whoever asked goes on asking, until those in join() see it too
        agreement.require_equal(self.facts())
        self._link = self._measured_link()
        if self._observer.outdated(self._members()):
            self._observer.detach()
            self._observer = self._observe()
        self._adopt(assign(agreement, self.task, self._observer, self._link))
        if not self._observer.experienced:
            self._ask_for_attention()  # the order of the new gradients is known after one step

    def _measured_link(self) -> LinkCost | None:
        if self.planned is None:
            return self._link
        records = self.planned.session.take_records()
        return fit_link([Sample(r.bytes, r.sent_us, r.done_us) for r in records]) or self._link

    def _adopt(self, assignment: Assignment) -> None:
        self._drop_reducers()
        self.epoch += 1
        self._planned_at_step = self.clock.steps
        prefix = f"deft.{self._number}.{self.epoch}"
        deadline_s = self.task.config.deadline_s
        if assignment.plan is not None:
            self.planned = PlannedReducer(
                assignment.planned,
                assignment.plan,
                self.task.channel,
                prefix,
                deadline_s,
                self.clock,
            )
            slot_of = {id(member): slot for slot, member in enumerate(assignment.planned)}
            self._observer.collector.set_sink(
                self.planned.session, [slot_of.get(id(m), -1) for m in self._observer.members]
            )
            self._place_gates(assignment)
        if assignment.stock:
            reducer = StockReducer(
                assignment.stock,
                self.task.channel,
                prefix + ".stock",
                deadline_s,
                self.task.groups.of(assignment.stock),
            )
            self._stock = StockHooks(reducer, self.passes_per_step)
        if self._observer.experienced:
            self._observer.stop_watching()
        if self.task.config.verbose and stock.rank() == 0 and assignment.plan is not None:
            _LOG.warning("%s", assignment.plan.describe())

    def _place_gates(self, assignment: Assignment) -> None:
        plan, planned = assignment.plan, self.planned
        gated = plan is not None and any(g.gated for g in plan.generations)
        if not gated or planned is None or not self._observer.roots:
            return  # without a forward to hook into, everything is waited for at the boundary
        gates = self._observer.gates(assignment.planned)
        self._gates = Gates(self._inner, planned, gates, self._observer.roots)

    def _drop_reducers(self) -> None:
        if self._gates is not None:
            self._gates.close()
            self._gates = None
        if self.planned is not None:
            self._observer.collector.set_sink(None, [])
            self.planned.close()
            self.planned = None
        if self._stock is not None:
            self._stock.detach()
            self._stock = None
