"""Timeline: what happens when a plan runs, step after step, if everything takes what was measured.

A step is forward, backward, boundary, update. Gradients become ready inside backward. The boundary
waits for the generations that are applied there, and only then lets the next forward window open;
a gated generation is waited for in the next forward, at the first use of its parameters, and
everything behind shifts. Messages travel meanwhile (see `message_times`).

Compute takes what the profile says whatever travels, and so does a message whatever is computed:
the link's measured cost contains what it is like to be used during training.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal, NamedTuple

from deft_horovod.plan import Bucket, Plan, Slot
from deft_horovod.plan.contents import contents
from deft_horovod.profile import Profile
from deft_horovod.solver.predict.costs import busy_us, check_fit, task_times_us
from deft_horovod.solver.predict.message_times import Traffic

# Cycles beyond those that a message takes to be applied: a limit for links so nearly saturated
# that the backlog grows a little in every cycle.
_CYCLES: Final = 3
_STEPS: Final = 16
_SAME: Final = 1e-9


@dataclass(frozen=True)
class Wait:
    """Compute stands still until a generation has arrived."""

    generation: int
    begins_us: float
    ends_us: float


@dataclass(frozen=True)
class StageSpan:
    """One stage of one step, with the waiting inside it. The wait for what is applied at a
    boundary lies between backward and update."""

    step: int
    stage: Literal["forward", "backward", "update"]
    begins_us: float
    ends_us: float


class SimulatedMessage(NamedTuple):
    """One message, from its last gradient to the moment at which its sum is applied."""

    task: int
    link: int
    ready_us: float
    leaves_us: float  # handed to the link, which may still be busy with those before it
    starts_us: float
    arrives_us: float
    applied_us: float


@dataclass(frozen=True)
class Timeline:
    """One period of the steady state. Times are since the forward of its first step began;
    messages may arrive after the period has ended: those of the period before it then do so in it,
    at the same place."""

    step_us: float  # mean over the period
    compute_us: float
    period_us: float
    link_busy: tuple[float, ...]  # share of the time that each link is in use
    stages: tuple[StageSpan, ...]
    waits: tuple[Wait, ...]
    messages: tuple[SimulatedMessage, ...]  # in the order of the plan's tasks
    # False: the backlog of a link was still growing when the simulation ended. The step time is
    # then what the link needs in the long run, the rest a snapshot.
    steady: bool

    @property
    def exposed_us(self) -> float:
        """Communication that a step waits for."""
        return max(0.0, self.step_us - self.compute_us)


# Of each bucket: when its last gradient is there, since backward began; and when the first of its
# parameters is used, since forward began (its end for those without a known use).
BucketMoments = tuple[Sequence[float], Sequence[float]]


def simulate(plan: Plan, profile: Profile, moments: BucketMoments | None = None) -> Timeline:
    """Runs the plan from its first step on until a period repeats the one before it.

    A plan that leaves everything to stock Horovod is empty, so all it takes is compute. `moments`:
    those of its buckets, where they are known already.
    """
    check_fit(plan, profile)
    task_us = task_times_us(plan, profile)
    moments = moments or bucket_moments(plan.slots, plan.buckets, profile)
    run = _Run(plan, profile, moments, Traffic(plan, task_us))
    lag = max(((g.apply_step + g.gated) // plan.period for g in plan.generations), default=0)
    # Before cycle `lag` some messages have none of the cycles before that they could meet.
    steady = False
    for cycle in range(2 * lag + _CYCLES + _STEPS // plan.period):
        run.cycle(cycle)
        if cycle > 2 * lag and run.repeats(cycle - lag, cycle):
            steady = True
            break
    shown = run.cycles_done - 1 - lag
    begins_us = run.begins_us(shown)
    period_us = run.begins_us(shown + 1) - begins_us
    links_us = busy_us(plan, task_us)
    needed_us = max([*links_us, period_us if steady else run.mean_period_us(shown)])
    return Timeline(
        step_us=max(needed_us / plan.period, profile.compute_us),
        compute_us=profile.compute_us,
        period_us=period_us,
        link_busy=tuple(busy / needed_us if needed_us > 0.0 else 0.0 for busy in links_us),
        stages=tuple(
            StageSpan(step, stage, begin - begins_us, end - begins_us)
            for step, stage, begin, end in run.stages(shown)
        ),
        waits=tuple(
            Wait(wait.generation, wait.begins_us - begins_us, wait.ends_us - begins_us)
            for wait in run.waits(shown)
        ),
        messages=tuple(run.messages(shown)),
        steady=steady,
    )


class _Run:
    """The training loop. Steps are counted from its very beginning."""

    def __init__(
        self, plan: Plan, profile: Profile, moments: BucketMoments, traffic: Traffic
    ) -> None:
        self._plan, self._profile, self._traffic = plan, profile, traffic
        self._period = plan.period
        ready_us, need_us = moments
        self._first_ready_us = min(
            (profile.ready_in_backward_us(i) for i in range(len(plan.slots))), default=0
        )
        # By step of the cycle: what becomes complete in it, and what is applied at its boundary or
        # in the forward behind it.
        self._complete: list[list[tuple[float, int]]] = [[] for _ in range(plan.period)]
        self._due: list[list[int]] = [[] for _ in range(plan.period)]
        gated: list[list[tuple[float, int]]] = [[] for _ in range(plan.period)]
        place = [(bucket.arena, bucket.begin) for bucket in plan.buckets]
        order = sorted(
            range(len(plan.generations)), key=lambda g: place[plan.generations[g].bucket]
        )
        for index in order:
            spec = plan.generations[index]
            self._complete[spec.last_step].append((ready_us[spec.bucket], index))
            if spec.gated:
                gated[spec.apply_step % plan.period].append((need_us[spec.bucket], index))
            else:
                self._due[spec.apply_step % plan.period].append(index)
        for group in (*self._complete, *gated):
            group.sort(key=lambda entry: entry[0])
        self._gates = [
            [(at, [index for _, index in held]) for at, held in groupby(group, lambda g: g[0])]
            for group in gated
        ]
        self._apply_step = [spec.apply_step for spec in plan.generations]
        self._now_us = 0.0
        self._spans: list[tuple[float, ...]] = []  # of each step: where its stages begin and end
        self._waits: list[list[Wait]] = []  # of each step
        self._applied_us: dict[tuple[int, int], float] = {}  # of (generation, cycle)
        traffic.open_window(0.0)

    @property
    def cycles_done(self) -> int:
        return len(self._spans) // self._period

    def cycle(self, cycle: int) -> None:
        for step in range(cycle * self._period, (cycle + 1) * self._period):
            self._step(step)

    def _step(self, step: int) -> None:
        profile, place = self._profile, step % self._period
        self._waits.append([])
        forward_us = self._now_us
        backward_us = self._forward(step, forward_us) + profile.forward_us
        self._traffic.open_window(backward_us + self._first_ready_us)
        self._traffic.complete(
            [(backward_us + ready_us, index) for ready_us, index in self._complete[place]],
            step // self._period,
        )
        ended_us = backward_us + profile.backward_us
        due = self._instances(step, self._due[place])
        update_us = self._wait(due, ended_us, step)
        self._applied_us.update(dict.fromkeys(due, update_us))
        # What is gated or delayed may go on as soon as the boundary is crossed.
        self._traffic.open_window(update_us)
        self._now_us = update_us + profile.optimizer_us
        self._spans.append((forward_us, backward_us, ended_us, update_us, self._now_us))

    def _forward(self, step: int, begins_us: float) -> float:
        """When forward would have begun, had it not been held up at its gates."""
        if step == 0:
            return begins_us
        for need_us, gated in self._gates[(step - 1) % self._period]:
            held = self._instances(step - 1, gated)
            opened_us = self._wait(held, begins_us + need_us, step)
            begins_us = opened_us - need_us
            self._applied_us.update(dict.fromkeys(held, opened_us))
        return begins_us

    def _instances(self, step: int, generations: Iterable[int]) -> list[tuple[int, int]]:
        """Those that are applied in this step; none from before the first cycle."""
        found = []
        for index in generations:
            cycle = (step - self._apply_step[index]) // self._period
            if cycle >= 0:
                found.append((index, cycle))
        return found

    def _wait(self, instances: Sequence[tuple[int, int]], now_us: float, step: int) -> float:
        """Until all of them have arrived."""
        latest = (now_us, -1)
        for generation, cycle in instances:
            latest = max(latest, (self._traffic.arrival_us(generation, cycle), generation))
        ends_us, generation = latest
        if ends_us > now_us:
            self._waits[step].append(Wait(generation, now_us, ends_us))
        return ends_us

    # --- what happened -----------------------------------------------------------------------
    def begins_us(self, cycle: int) -> float:
        step = cycle * self._period
        return self._spans[step][0] if step < len(self._spans) else self._now_us

    def mean_period_us(self, last: int) -> float:
        """Of the later half of the cycles up to the given one."""
        first = (last + 1) // 2
        return (self.begins_us(last + 1) - self.begins_us(first)) / (last + 1 - first)

    def stages(
        self, cycle: int
    ) -> list[tuple[int, Literal["forward", "backward", "update"], float, float]]:
        found: list[tuple[int, Literal["forward", "backward", "update"], float, float]] = []
        for step in range(self._period):
            forward, backward, ended, update, done = self._spans[cycle * self._period + step]
            found += [
                (step, "forward", forward, backward),
                (step, "backward", backward, ended),
                (step, "update", update, done),
            ]
        return found

    def waits(self, cycle: int) -> list[Wait]:
        steps = self._waits[cycle * self._period : (cycle + 1) * self._period]
        return [wait for waits in steps for wait in waits]

    def messages(self, cycle: int) -> list[SimulatedMessage]:
        begins_us = self.begins_us(cycle)
        return [
            SimulatedMessage(
                task=index,
                link=task.link,
                ready_us=times.ready_us - begins_us,
                leaves_us=times.leaves_us - begins_us,
                starts_us=times.starts_us - begins_us,
                arrives_us=times.arrives_us - begins_us,
                applied_us=self._applied_us[task.generation, cycle] - begins_us,
            )
            for index, (task, times) in enumerate(
                zip(self._plan.tasks, self._traffic.times(cycle), strict=True)
            )
        ]

    def repeats(self, cycle: int, now: int) -> bool:
        """Whether the messages of a cycle, and all stages since, are those of the cycle before."""
        slack_us = _SAME * (1.0 + self._now_us)
        shift_us = self.begins_us(cycle) - self.begins_us(cycle - 1)
        stages = range(cycle * self._period, (now + 1) * self._period)
        return all(
            _alike(self._spans[step], self._spans[step - self._period], shift_us, slack_us)
            for step in stages
        ) and all(
            _alike(one, other, shift_us, slack_us)
            for one, other in zip(
                self._traffic.times(cycle), self._traffic.times(cycle - 1), strict=True
            )
        )


def _alike(one: Sequence[float], other: Sequence[float], shift_us: float, slack_us: float) -> bool:
    """Whether two lists of moments differ by one shift."""
    return all(abs(a - b - shift_us) <= slack_us for a, b in zip(one, other, strict=True))


def bucket_moments(
    slots: Sequence[Slot], buckets: Sequence[Bucket], profile: Profile
) -> BucketMoments:
    """By the profile."""
    end_us = profile.forward_us
    ready_us = [profile.ready_in_backward_us(index) for index in range(len(slots))]
    use_us = [end_us if use is None else min(use, end_us) for use in profile.first_use_us]
    inside = contents(slots, buckets)
    return (
        [max([ready_us[index] for index in members]) for members in inside],
        [min([use_us[index] for index in members]) for members in inside],
    )
