"""The control of one optimizer: what runs next, and why.

It follows the phases, takes the profile on the way, lets candidates be compared by all ranks, and
notices when steps or messages take longer than they did when the plan was made. Every decision is
made from numbers that all ranks have, at a boundary that all ranks know.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import torch

from deft_horovod import policies
from deft_horovod.base.trace import Line
from deft_horovod.peers import stock
from deft_horovod.plan import Plan
from deft_horovod.policies.limits import within
from deft_horovod.policies.memory import Memory
from deft_horovod.profile import LinkCost, LinkProfile, Profile
from deft_horovod.runtime.correct.correction import possible
from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.decide.drift import Drift
from deft_horovod.runtime.decide.guard import Guard, guard_of
from deft_horovod.runtime.decide.log_lines import lateness_text, verdict
from deft_horovod.runtime.decide.measuring_debt import MeasuringDebt
from deft_horovod.runtime.decide.phases import Phase, Phases
from deft_horovod.runtime.decide.planning import Assignment, assign
from deft_horovod.runtime.decide.profiling import Profiling
from deft_horovod.runtime.decide.rate_watch import RateWatch
from deft_horovod.runtime.decide.replan_vote import ReplanVote, State
from deft_horovod.runtime.decide.trials.far_behind import exact_ranges
from deft_horovod.runtime.decide.trials.trial_results import comparison, fastest, slow
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.follower import Follower, Wish
from deft_horovod.runtime.job_request import AskedOptimizer
from deft_horovod.runtime.links.links import Links
from deft_horovod.runtime.measure.gradient_statistics import GradientStatistics
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.measure.step_clock import StepClock
from deft_horovod.runtime.process import Process
from deft_horovod.runtime.ranks.agreement import Agreement, largest
from deft_horovod.runtime.ranks.clock_offset import clock_offset
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.reduce.installed import Boundary
from deft_horovod.runtime.reduce.loss_scale import LossScales
from deft_horovod.runtime.reduce.planned import PlannedReducer, is_late
from deft_horovod.runtime.reduce.thrown_away import ThrownAway
from deft_horovod.runtime.trace.tracer import Tracer

_LOG: Final = logging.getLogger("deft_horovod")
_REPORT_AFTER_STEPS: Final = 10  # with the final plan


class Control:
    """Decides for one optimizer."""

    def __init__(
        self, brief: Brief, inner: torch.optim.Optimizer, scales: LossScales, process: Process
    ) -> None:
        self.links = Links(brief.reduction, brief.config)
        self._process = process
        self._whole_brief = brief
        self._inner = inner
        self._asked: AskedOptimizer[Any] | None = None  # of the job's request
        self._phases = Phases(brief.policy.name, brief.config, purpose=brief.purpose)
        self._debt = MeasuringDebt()
        self._drift = Drift(brief.config.drift, brief.config.drift_steps, self._debt)
        self._profiling = Profiling(inner)
        self._memory = Memory()
        self._tried: dict[tuple[str, bool], Plan] = {}
        self._link: LinkCost | None = None  # seen in messages, without a profile
        self._vote = ReplanVote()
        self._steps_with_plan = 0
        self._reasons: Counter[str] = Counter()
        self._tracer: Tracer | None = None
        self._guard: Guard | None = None
        self._thrown_away = ThrownAway()
        self._rate = RateWatch(inner, brief, scales)
        self._warned = False  # that updates may come late

    # --- what runs now -----------------------------------------------------------------------
    @property
    def profile(self) -> Profile | None:
        """Of the parameters that are watched."""
        return self._profiling.profile

    @property
    def phase(self) -> Phase:
        """The current one."""
        return self._phases.phase

    @property
    def brief(self) -> Brief:
        """The brief as the current phase has it: another policy, or limits that are tighter."""
        return self._brief_of(self.phase)

    def _brief_of(self, phase: Phase) -> Brief:
        policy = self._memory.of(policies.get(phase.policy))
        sums = phase.late and self._thrown_away.sums
        return replace(self._whole_brief, policy=policy, late=phase.late, sums=sums)

    @property
    def plans_at_once(self) -> bool:
        """Whether the policy plans from the first impression instead of a profile."""
        return not self._measures and not self._whole_brief.config.plan_file

    @property
    def _measures(self) -> bool:
        return self._whole_brief.policy.measures or self._whole_brief.purpose != "train"

    # --- boundaries --------------------------------------------------------------------------
    def meet(self, agreement: Agreement, observer: Observer, number: int) -> None:
        """The ranks meet for the first time, or anew; `number`: of this optimizer."""
        encodes = self._whole_brief.encodes
        self.links.open(agreement, number, observer.members, encodes=encodes)
        config = self._whole_brief.config
        self._guard = self._new_guard(agreement, observer)
        if config.trace and self._tracer is None:
            file = self._process.trace_file(config.trace, stock.rank())
            line = Line(stock.rank(), number)
            self._tracer = Tracer(file.write, line, clock_offset(agreement), config.trace_steps)

    def _new_guard(self, agreement: Agreement, observer: Observer) -> Guard | None:
        able = possible(self._whole_brief.correction, observer.roots)
        return guard_of(self._whole_brief, able, deciding=agreement.deciding)

    def assign(self, agreement: Agreement, observer: Observer) -> Assignment:
        """Who travels how in this phase. The plan of one to come is made meanwhile."""

        def profile_of(members: Sequence[NamedParameter]) -> Profile:
            known = self._profiling.of(members)
            return observer.profile(members, self._link) if known is None else known

        brief = self.brief
        limits = brief.limits
        guard = self._guard if limits.late or limits.formats else None
        ahead = self._phases.plan_ahead(self.profile.compute_us) if self.profile else None
        upcoming = self._brief_of(ahead) if ahead is not None else None
        return assign(agreement, brief, observer, profile_of, guard, upcoming)

    def adopt(self, assignment: Assignment) -> None:
        """What came of planning."""
        plan = assignment.plan
        if self.phase.kind == "settled":
            self._memory.ahead.close()
        if self._guard is not None:
            self._guard.judged(assignment.judgement)
        if plan is not None and stock.rank() == 0 and self._whole_brief.config.verbose:
            _LOG.warning("%s", plan.describe())

    def follow(
        self, members: Sequence[NamedParameter], plan: Plan, correction: str
    ) -> GradientStatistics | None:
        """This is at work from now on. Returns who has to see its gradients."""
        if is_late(plan) and not self._warned and stock.rank() == 0:
            self._warned = True
            _LOG.warning("%s", lateness_text(plan, correction))
        return self._guard.follow(members, plan) if self._guard is not None else None

    @property
    def _followers(self) -> list[Follower[Boundary]]:
        profiler = self._profiling.profiler
        watches = (self._rate, self._debt, self._drift, self._guard)
        every = (self._tracer, profiler, self._asked, *watches)
        return [follower for follower in every if follower is not None]

    def begin_boundary(self) -> None:
        """The optimizer asks for its averages."""
        for follower in self._followers:
            follower.begin_boundary()

    def updated(self) -> bool:
        """The optimizer has updated what was due. Whether a new plan is wanted now, on all ranks
        alike."""
        for follower in self._followers:
            follower.updated()
        return self._vote.due

    def skip_step(self, plan: Plan | None) -> None:
        """The gradients of this step were thrown away."""
        for follower in self._followers:
            follower.skip_step()
        if self._thrown_away.one_more(plan) and not self._whole_brief.config.plan_file:
            self._vote.move(State.ASKED)

    def end_boundary(
        self,
        clock: StepClock,
        planned: PlannedReducer | None,
        collected: native.Collected | None,
        agree: Callable[[], Agreement],
        *,
        changed: bool,
        unplannable: bool,
    ) -> bool:
        """A step has ended. True when this rank wants a new plan and has to ask the others."""
        at = Boundary(
            step=clock.steps,
            step_us=clock.last_step_us,
            planned=planned,
            collected=collected,
            settled=self.phase.kind == "settled",
            late=self.phase.late,
            profiled=self._may_drift,
        )
        wish = max(follower.end_boundary(at) for follower in self._followers)
        self._steps_with_plan += 1
        self._report(clock, planned)
        phase_over = self._phases.step(at.step_us)
        if self._phases.may_end:
            phase_over = not agree().union([not self._phases.is_steady])[0]
        if changed or unplannable or self._has_learnt():
            wish = Wish.MEASURE_AGAIN
        if wish is Wish.MEASURE_AGAIN:
            self._vote.want()
        wants = wish is not Wish.NOTHING
        # Without a plan there are no headers to ask in; the program is the same on all ranks.
        asked = changed if planned is None else planned.take_replan_request()
        may_ask = planned is None and (self._may_drift or self._debt.waits)
        if may_ask and self._steps_with_plan % self._drift.steps == 0:
            asked = agree().union([wants])[0] or asked
        if phase_over:
            self._vote.move(State.PHASE_OVER)
        if asked:
            self._vote.move(State.ASKED)
        return wants

    def _report(self, clock: StepClock, planned: PlannedReducer | None) -> None:
        """Says once what came out."""
        if self._steps_with_plan == _REPORT_AFTER_STEPS and self._may_drift and self.profile:
            plan = planned.plan if planned is not None else None
            if stock.rank() == min(self._whole_brief.reduction.process_set.ranks):
                step_us = clock.medians()["step_us"]
                _LOG.warning("%s", verdict(self.profile, plan, step_us, self._phases.trials))

    @property
    def _may_drift(self) -> bool:
        """Whether there is a profile that may become outdated."""
        measured = self.phase.kind == "settled" and self.profile is not None
        return measured and self._whole_brief.purpose == "train"

    def _has_learnt(self) -> bool:
        """A policy without a profile plans again once it has seen some messages travel."""
        after = self._whole_brief.policy.replan_after_steps
        return (
            self.plans_at_once
            and after is not None
            and self._link is None
            and self._steps_with_plan >= after
        )

    def turn(
        self,
        agreement: Agreement,
        observer: Observer,
        planned: PlannedReducer | None,
        *,
        corrected: bool,
    ) -> None:
        """Decides what comes next. All ranks are here, and nothing is in flight. `corrected`: late
        updates would be."""
        self._steps_with_plan = 0
        self._drift.restart()
        why = self._vote.count(agreement)
        # With new parameters it is not known yet whether late updates would be corrected.
        turned = why.asked and not why.again and self._rate.agree(agreement, corrected=corrected)
        if turned:
            self._follow_rate()
            self._guard = self._new_guard(agreement, observer)
        if why.asked:
            judged = self._guard is not None and not why.again
            kinds = (("learning rate", turned), ("accuracy", judged), ("asked by a rank", True))
            self._reasons[next(kind for kind, true in kinds if true)] += 1
        if self.plans_at_once:
            self._link = (self.links.cost(agreement, planned) if planned else None) or self._link
        elif not why.asked:
            self._end_phase(agreement, planned)
        elif turned and self._rate.calm:
            self._phases.try_late()
        elif why.again or turned:  # else all is known: only the guard's plan is another one
            measure = turned or self._may_measure(agreement)
            self._restart(observer, self._whole_brief.config.warmup_steps, measure=measure)

    def _may_measure(self, agreement: Agreement) -> bool:
        """One rank with time for it is enough. People who ask for a measurement want it."""
        return agreement.union([self._debt.paid or self._whole_brief.purpose != "train"])[0]

    def _follow_rate(self) -> None:
        self._whole_brief = self._rate.brief
        self._phases.calm = self._rate.calm

    def _restart(self, observer: Observer, steps_done: int, *, measure: bool = True) -> None:
        """Everything is measured again, stock Horovod first; or later."""
        self._debt.restart(measure=measure)
        self._phases.restart(steps_done)
        self._profiling.forget()
        if not measure or not observer.members:
            self._phases.rest()  # until there is time for it, or something trains
        if self.phase.kind == "profile":
            config = self._whole_brief.config
            self._profiling.begin(observer, config.profile_warmup_steps, config.profile_steps)

    def _probe(self, agreement: Agreement) -> tuple[LinkProfile, ...]:
        asked = self._whole_brief.asked_costs
        return self.links.probe(agreement, self._profiling.members, asked)

    def _end_phase(self, agreement: Agreement, planned: PlannedReducer | None) -> None:
        self._reasons[f"end of {self.phase.kind}"] += 1
        if self._profiling.profiler is not None:
            profile = self._profiling.end(agreement, self._probe(agreement))
            if self._asked is not None and self._whole_brief.purpose == "profile":
                self._asked.take(profile, agreement)
        if self.phase.kind == "trial" and planned is not None:
            self._tried[self.phase.who] = planned.plan
        self._phases.end_phase()
        config = self._whole_brief.config
        if self._phases.may_drop:
            plan = planned.plan if planned is not None else None
            untried = exact_ranges(self._phases.untried, config, self.profile, plan)
            self._phases.drop(slow(agreement, self._phases.rounds, untried))
        if not self._phases.undecided:
            self._phases.proceed()
            return
        chosen, again = fastest(agreement, self._phases.rounds, config.min_gain)
        if again and self._phases.try_again(again):
            return
        if self._asked is not None and self.profile is not None:
            name, rounds = self._whole_brief.policy.name, self._phases.rounds
            found = comparison(agreement, name, config.min_gain, rounds, self._tried, self.profile)
            self._asked.take(found, agreement)
        self._phases.keep(*chosen)
        if not chosen[1] and self._guard is not None and self._guard.allows_all:
            self._rate.gained_nothing()

    # --- beginnings and ends -----------------------------------------------------------------
    def start(self, agreement: Agreement, observer: Observer) -> None:
        """The ranks have met. A profile from before (elastic training) is kept if all have it."""
        if self.phase.kind != "profile":
            return
        everyone = self._whole_brief.reduction.process_set.size() == stock.size()
        request = self._process.job_request if everyone else None  # all have to end together
        if request is not None and self._asked is None and observer.members:
            tensors = [member.tensor for member in observer.members]
            self._asked = request.asked_optimizer(type(self._inner).__name__, tensors)
        # A worker that has just come has done none, and all have to be at the same place.
        steps = int(*largest(agreement, [self._phases.done]))
        if any(agreement.union([not self._profiling.is_of(observer.members)])):
            self._restart(observer, steps)
            return
        size = self._whole_brief.reduction.process_set.size()
        self._profiling.carry_over(self._probe(agreement), size)
        self._phases.restart(steps)
        self._phases.proceed()

    def resume(self, agreement: Agreement, observer: Observer, plan: Plan) -> None:
        """This plan was restored: it runs to the end, or for a step where options forbid it now."""
        self._rate.resume()
        self._follow_rate()
        self._guard = self._new_guard(agreement, observer)
        self._debt.waits = False
        brief = self._whole_brief
        self._phases.phases = (Phase("settled", brief.policy.name, late=True),)
        if not (brief.config.plan_file or within(plan, brief.limits)):
            self._vote.want()
            self._vote.move(State.PHASE_OVER)

    def rejoin(self, agreement: Agreement) -> None:
        """All ranks have come out of ``join()``, having run different numbers of steps."""
        self._vote.withdraw()
        counts = [self._phases.steps, self._steps_with_plan]
        steps, self._steps_with_plan = map(int, largest(agreement, counts))
        if self.phase.steps and self._phases.catch_up(steps):
            self._vote.move(State.PHASE_OVER)

    def forget(self, steps: int) -> None:
        """The ranks have to meet anew."""
        self._vote.clear()
        self._steps_with_plan = 0
        self._drift.restart()
        self.links.close()
        self._rate.forget()
        self._follow_rate()
        self._profiling.drop_unfinished()
        self._memory.ahead.close()
        self._phases.restart(steps)

    def stats(self) -> dict[str, Any]:
        """In which phase the job is, and why it planned anew."""
        return {
            "phase": self.phase.kind,
            "running": self.phase.policy,
            "replans": dict(self._reasons),
            "accuracy": self._guard.stats() if self._guard is not None else None,
            "trials_us": self._phases.named_trials(),
        }
