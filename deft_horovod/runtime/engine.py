"""The engine of one optimizer: observes, agrees, plans, reduces.

The first step only observes. At its end the ranks compare what has to be equal, the lowest rank
plans, and every rank runs that plan. A new plan comes when a phase of the job ends, or when
something changed (parameters, the time of a step): then a rank asks for a new plan in the headers
of its gradients; all read the same answer at the same boundary. Nothing is in flight between plans.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from deft_horovod.peers import stock
from deft_horovod.plan.formats import is_encoded
from deft_horovod.profile import Profile
from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.decide.control import Control
from deft_horovod.runtime.decide.planning import Assignment, job_facts
from deft_horovod.runtime.installer import Installer
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.measure.step_clock import StepClock
from deft_horovod.runtime.process import Process
from deft_horovod.runtime.ranks.agreement import Agreement, device_of_zeros
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.ranks.waits import horovod_has_ended
from deft_horovod.runtime.reduce import updates
from deft_horovod.runtime.reduce.encoded import require_between_steps
from deft_horovod.runtime.reduce.in_flight import InFlight, agreed_members
from deft_horovod.runtime.reduce.installed import Installed
from deft_horovod.runtime.reduce.loss_scale import LossScales
from deft_horovod.runtime.reduce.planned import PlannedReducer
from deft_horovod.runtime.stats import step_stats


class Engine:
    """Reduces the gradients of one optimizer, step by step."""

    def __init__(
        self,
        inner: torch.optim.Optimizer,
        members: Callable[[], tuple[NamedParameter, ...]],
        brief: Brief,
        passes_per_step: int,
        process: Process,
    ) -> None:
        self._process = process
        self.clock = StepClock()
        self.brief = brief
        self.passes_per_step = passes_per_step
        self.epoch = 0  # counts the plans of this optimizer
        self.dropped = 0  # generations that were thrown away, by rules that say so
        self._inner = inner
        self._members = members
        self.number: int | None = None  # among the optimizers of the job, once agreed
        self._assignment: Assignment | None = None
        self._installed = Installed()
        self._restored: InFlight | None = None
        self.scales = LossScales()
        self._training_thread = threading.get_ident()
        self._unapplied = False  # a boundary was reached whose updates were not made
        self._observer = self._observe()
        self._control = Control(brief, inner, self.scales, process)
        self._installer = Installer(brief, inner, self.scales, self.clock, self._control)
        process.engines.add(self)

    def __del__(self) -> None:
        if self.planned is not None:
            self._process.inherit(self.planned, self.unapplied, in_step=self.complete)

    # --- the step ----------------------------------------------------------------------------
    @property
    def pending(self) -> bool:
        """Whether a gradient came since the last boundary."""
        return self._observer.collector.any()

    @property
    def complete(self) -> bool:
        """Whether some gradient of this step has had all its backward passes."""
        return self._observer.collector.complete()

    @property
    def process_set_id(self) -> int:
        """Of the ranks that reduce together."""
        return int(self.brief.reduction.process_set.process_set_id)

    @property
    def handles_scaling(self) -> bool:
        """Whether a loss scaler has to leave the unscaling to us."""
        may_be = bool(self.brief.config.plan_file) or self._restored is not None
        return self.late or (self.number is None and may_be)

    @property
    def late(self) -> bool:
        """Whether updates may be on their way between steps, apart from those behind gates."""
        return self._installed.late is not None

    @property
    def planned(self) -> PlannedReducer | None:
        """The plan at work."""
        return self._installed.planned

    @property
    def profile(self) -> Profile | None:
        """What was measured."""
        return self._control.profile

    def set_passes_per_step(self, passes: int) -> None:
        """Counts so many backward passes per step from now on."""
        self.passes_per_step = passes
        self._observer.collector.set_passes_per_step(passes)
        self._installed.set_passes_per_step(passes)

    def set_adding(self, *, adding: bool) -> None:
        """Backward passes only add to gradients, or count."""
        self._observer.collector.set_adding(adding)
        self._installed.set_adding(adding=adding)

    def synchronize(self, hold_gated: bool) -> None:
        """Ends the step: what is due is in ``p.grad``, but for what may wait for its gate."""
        self._training_thread = threading.get_ident()
        self._control.begin_boundary()
        self.open_gates()
        if self.number is None:
            self._observer.end_step()
            if not self._start():
                # A rank is in join(): no plan can be agreed on, but Horovod's own calls still work.
                self._reduce_now(self._observer.members)
                return
        changed = self._observer.outdated(self._members())
        held = self._installed.finish(self.clock, hold_gated=hold_gated)
        self._observer.end_step()
        planned = self.planned.members if self.planned is not None else ()
        unplannable = self._observer.unplannable(planned)
        if changed:
            unplannable += self._observer.newly_training(self._members(), self._agreement())
        self._reduce_now(unplannable)
        self._installed.hold(held, updates.options_of(self._inner))
        self.clock.boundary()
        wants = self._control.end_boundary(
            self.clock,
            self.planned,
            self._observer.last,
            self._agreement,
            changed=changed,
            unplannable=bool(unplannable),
        )
        if wants and self.planned is not None:
            self.planned.session.request_replan()
        self._unapplied = True

    def after_step(self) -> None:
        """The updates of this boundary are done."""
        self._unapplied, due = False, self._control.updated()
        self._installed.updated()
        if due and self.number is not None:
            self._turn()

    def open_gates(self) -> None:
        """Applies what is held back."""
        self._installed.open_gates()

    def show_state(self) -> None:
        """The optimizer's state is about to be read. Another thread takes it as it is."""
        if threading.get_ident() == self._training_thread:
            self.open_gates()

    def flush(self, *, rests: bool) -> None:
        """Applies whatever is on its way; with late updates all ranks call it at the same boundary,
        and the plan's cycle begins anew. Gradients of a step that has not ended stay in ``p.grad``
        and travel when it ends. `rests`: the next messages are whole."""
        rests = rests and self.planned is not None and is_encoded(self.planned.plan)
        if rests:
            require_between_steps(self._agreement(), in_step=self.complete)
        self.open_gates()
        if (late := self._installed.late) and self._assignment is not None:
            if self.complete:
                gated = updates.discard(late, self._inner, self.scales, kept=True)
                updates.apply_now(late, self._inner, gated, self.scales)
            updates.flush(late, self._inner, self.scales)
            self._begin_cycle(self._assignment, late)
        if rests:
            self._installer.rests.send_whole()

    def settle(self, limit_s: float) -> None:
        """The others get our part of what is on its way, and what gates hold is applied. In the
        middle of a step they may never send theirs."""
        if self.planned is not None and not self.complete:
            self.planned.settle(limit_s)
            self.open_gates()

    @property
    def unapplied(self) -> int:
        """How many generations are on their way."""
        return len(late.session.alive()) if (late := self._installed.late) else 0

    def depart(self) -> None:
        """This rank goes into ``join()``."""
        self.open_gates()
        if late := self._installed.late:
            self.dropped += updates.depart(late, self._inner, self.scales)

    def rejoin(self) -> None:
        """All ranks have come out of ``join()``. Those that left early have not read what the last
        headers asked for, so no rank acts on it. A rank that asked asks again in the next step."""
        if self.planned is not None:
            self.planned.forget_requests()
        self._control.rejoin(self._agreement())
        if (late := self._installed.late) and self._assignment is not None:  # a new cycle for all
            self._begin_cycle(self._assignment, late)

    def throw_away(self, *, to_zero: bool) -> None:
        """The user clears gradients: those of this step are void on all ranks, also where their
        averages are in ``p.grad`` already. What is due from earlier steps is applied."""
        if self._unapplied:
            self._unapplied = False
            if late := self._installed.late:
                updates.throw_away(late, self._inner, self.scales)
        if self.pending:
            self.discard()
        self._installed.forget_gradients(to_zero=to_zero)

    def discard(self) -> None:
        """Throws away the gradients of the step that is under way, on all ranks alike."""
        plan = self.planned.plan if self.planned and self.complete else None
        if self.number is not None and self.complete:
            if late := self._installed.late:
                gated = updates.discard(late, self._inner, self.scales)
                self._installed.finish_stock(self.clock)
                at_once = self._installed.hold(gated, updates.options_of(self._inner))
                updates.apply_now(late, self._inner, at_once, self.scales)
                self._installed.watch()
            else:
                self._installed.finish(self.clock, hold_gated=False)
        self._observer.collector.reset()
        self._installed.reset_stock()
        self.clock.boundary()
        self._control.skip_step(plan)

    def recover(self) -> None:
        """Other parameters are about to be loaded: nothing from before may reach them."""
        self._unapplied = False
        failed = horovod_has_ended() or self._installed.failed
        if not failed:
            try:
                self.open_gates()
                if self.pending:
                    self.discard()
                if late := self._installed.late:
                    late.settle()
            except stock.HorovodInternalError:  # a peer died; loading recovers from it
                failed = True
        if failed or self.late:
            self.forget()
        self._installer.rests.clear()

    def forget(self) -> None:
        """Horovod is new, or its queue failed: what was agreed and what is in flight is void."""
        self.dropped, self._unapplied = self.dropped + self.unapplied, False
        self._uninstall()
        self._installer.rests.clear()
        self.number = None
        self.epoch = 0
        self._observer.detach()
        self._observer = self._observe()
        self._control.forget(self.clock.steps)

    # --- checkpoints -------------------------------------------------------------------------
    def in_flight(self) -> dict[str, Any] | None:
        """What is on its way, for a checkpoint; this rank alone may ask."""
        self.open_gates()
        planned = self.planned
        if planned is None or not (planned.late or is_encoded(planned.plan)):
            return None
        size = self.brief.reduction.process_set.size()
        return InFlight.of(planned, size, self.scales, in_step=self.complete).to_state()

    def restore(self, state: dict[str, Any] | None) -> None:
        """A checkpoint was loaded; goes on with what was in flight from the next step on."""
        self._restored = None if state is None else InFlight.from_state(state)
        if self._restored is not None:
            self.forget()

    def stats(self) -> dict[str, Any]:
        """Times, bytes and messages so far."""
        return {
            "policy": self.brief.policy.name,
            "plans": self.epoch,
            "dropped": self.dropped + (self.planned.dropped if self.planned else 0),
            "dropped_rests": self._installer.rests.dropped,
            **self._control.stats(),
            **step_stats(self.clock, self.planned),
        }

    def facts(self) -> dict[str, Any]:
        """What has to be equal on all ranks before anything travels."""
        return job_facts(self.brief, self._inner, self._members(), self.passes_per_step)

    # --- reducing without a plan, and planning ------------------------------------------------
    def _reduce_now(self, members: Sequence[NamedParameter]) -> None:
        """Without a plan: Horovod's own calls, all at once."""
        if members:
            prefix = f"deft.{'x' if self.number is None else self.number}.now"
            self._installer.stock_reducer(members, prefix).finish()

    def _observe(self) -> Observer:
        watch = self.brief.watches_forward
        return Observer(self._members(), self.passes_per_step, watch_forward=watch)

    def _agreement(self) -> Agreement:
        zeros = device_of_zeros(member.tensor.device for member in self._members())
        return Agreement(self.brief.reduction.process_set, self.brief.config.deadline_s, zeros)

    def _start(self) -> bool:
        agreement = self._agreement()
        if not agreement.everyone_here():
            return False
        agreement.require_equal(self.facts())
        self.number = number = self._process.take_number(self.process_set_id, agreement)
        self._control.meet(agreement, self._observer, number)
        if not self._go_on(agreement):
            self._control.start(agreement, self._observer)
            self._adopt(self._control.assign(agreement, self._observer))
        self.clock.skip()
        return True

    def _go_on(self, agreement: Agreement) -> bool:
        """With what a checkpoint had in flight, if all ranks have loaded it and it fits."""
        restored, self._restored = self._restored, None
        ranks = self.brief.reduction.process_set
        members = agreed_members(restored, agreement, self._observer.members, ranks.size())
        if restored is None or members is None:
            self.dropped += restored.drop(self._installer.rests) if restored is not None else 0
            return False
        chosen = {id(member) for member in members}
        rest = tuple(m for m in self._observer.members if id(m) not in chosen)
        self._control.resume(agreement, self._observer, restored.plan)
        self._installer.rests.restore(restored.rests_on(ranks.rank()))
        self._adopt(Assignment(restored.plan, members, rest))
        if self.planned is not None:
            restored.restore(self.planned, self.scales)
        return True

    def _turn(self) -> None:
        """A new plan, if all ranks are here."""
        agreement = self._agreement()
        if not agreement.everyone_here():
            return  # a rank that asked goes on asking, until those in join() see it too
        self.open_gates()
        if late := self._installed.late:
            updates.flush(late, self._inner, self.scales)
        agreement.require_equal(self.facts())
        if self._observer.outdated(self._members()):
            self._observer.detach()
            self._observer = self._observe()
        corrected = self._installer.correction(self._observer) == "local"
        self._control.turn(agreement, self._observer, self.planned, corrected=corrected)
        self._adopt(self._control.assign(agreement, self._observer))
        at_first = self._control.plans_at_once and not self._observer.experienced
        if at_first and self.planned is not None:
            self.planned.session.request_replan()  # after a step their order is known
        self.clock.forget()

    def _adopt(self, assignment: Assignment) -> None:
        self.epoch += 1
        self._control.adopt(assignment)
        self._install(assignment)
        if self._observer.experienced:
            self._observer.stop_watching()

    def _install(self, assignment: Assignment) -> None:
        """The assignment at work, from the beginning of its cycle."""
        self._uninstall()
        self._assignment = assignment
        hooks = self._installer.stock_hooks(assignment.stock, self.number, self.passes_per_step)
        self._installed = self._installer.install(assignment, self._observer, self.number, hooks)

    def _begin_cycle(self, assignment: Assignment, late: PlannedReducer) -> None:
        """The plan that runs begins anew."""
        sent = late.sent()
        self._drop_plan()
        self._installed = self._installer.install(
            assignment, self._observer, self.number, self._installed.stock, sent
        )

    def _drop_plan(self) -> None:
        self._observer.send_to(None, ())
        self.dropped += self._installed.close_plan()
        self._installed = Installed(stock=self._installed.stock)

    def _uninstall(self) -> None:
        self._drop_plan()
        self._installed.close_stock()
        self._installed = Installed()
