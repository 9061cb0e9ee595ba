"""The phases of a training job: which policy runs when, and what is measured on the way.

A policy that needs nothing but a first impression runs from the second step on. One that plans from
measurements starts with the stock way while the profile is taken; plans that are late on purpose
wait for the warm-up; `auto` lets its candidates take turns and keeps the fastest.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Literal

from deft_horovod import policies
from deft_horovod.comparison import STOCK
from deft_horovod.config import Config
from deft_horovod.peers import BASELINE
from deft_horovod.policies.ahead import LEAST_US
from deft_horovod.policies.limits import limits
from deft_horovod.runtime.job_request import Purpose

_SYNCHRONOUS: Final = "least_stale"
_ROUNDED: Final = "fewest_bytes"  # worth a try where wire formats are allowed
_MORE_ROUNDS: Final = 4  # where noise hides which candidate is the fastest
# A profile is over once all but one of the last steps took equally long, within that share: each
# costs as much as stock Horovod's do, and what counts is the median.
_STEADY_STEPS: Final = 5
_STEADY: Final = 0.05
LOOKS: Final = 40  # steps whose gradients are judged; the guard wants 20, twice is less noisy
_EXACT: Final = ("bucket", "priority")  # whatever may be rounded
_BY_HARM: Final = (BASELINE, *_EXACT, _SYNCHRONOUS, _ROUNDED)


@dataclass(frozen=True)
class Phase:
    """A run of steps with one policy."""

    kind: Literal["profile", "warmup", "trial", "settled"]
    policy: str
    late: bool = False  # whether its plans may apply updates late, as far as the options allow
    steps: int = 0  # 0: to the end of training

    @property
    def who(self) -> tuple[str, bool]:
        """A candidate, where this is a trial."""
        return self.policy, self.late


def planned_phases(
    policy: str,
    config: Config,
    steps_done: int,
    purpose: Purpose = "train",
    *,
    calm: bool = False,
) -> tuple[Phase, ...]:
    """The phases that lie ahead. After trials the last phase is still to be chosen."""
    profiled = max(1, config.profile_warmup_steps) + config.profile_steps
    if purpose == "profile":
        return (Phase("profile", STOCK, steps=profiled), Phase("settled", STOCK))
    if purpose == "train" and (not policies.get(policy).measures or config.plan_file):
        return (Phase("settled", policy, late=bool(config.plan_file)),)
    phases = [Phase("profile", STOCK, steps=profiled)]
    allowed = limits(policy, config, calm=calm)
    late = allowed.late
    wait = config.warmup_steps - steps_done - profiled
    if late and wait > 0 and purpose == "train":
        phases.append(Phase("warmup", _SYNCHRONOUS, steps=wait))
    if purpose == "train" and policy != "auto":
        return (*phases, Phase("settled", policy, late=late))
    candidates = _candidates(policy, late=late, rounded=bool(allowed.formats))
    return (*phases, *_trial_phases(candidates, config))


def _trial_phases(candidates: Iterable[tuple[str, bool]], config: Config) -> tuple[Phase, ...]:
    return config.trial_rounds * _one_round(candidates, config)


def _one_round(candidates: Iterable[tuple[str, bool]], config: Config) -> tuple[Phase, ...]:
    return tuple(Phase("trial", *who, steps=1 + config.trial_steps) for who in candidates)


def _candidates(policy: str, *, late: bool, rounded: bool) -> list[tuple[str, bool]]:
    """Policies, and whether they may be late: what `auto` chooses from, or the baseline and one
    other. What rounds has the first turn: after it some need none."""
    if policy != "auto":
        return [(BASELINE, False), (policy, late)]
    names = (*((_ROUNDED,) if rounded else ()), BASELINE, *_EXACT, _SYNCHRONOUS)
    candidates = [(name, False) for name in names]
    return [*candidates, (_SYNCHRONOUS, True)] if late else candidates


def _harm(who: tuple[str, bool]) -> tuple[bool, int]:
    """What comes first does the least to gradients."""
    name, late = who
    return late, _BY_HARM.index(name) if name in _BY_HARM else len(_BY_HARM)


@dataclass
class Phases:
    """Where a job is on its way."""

    policy: str
    config: Config
    phases: tuple[Phase, ...] = ()
    done: int = 0  # steps before the first phase
    purpose: Purpose = "train"
    calm: bool = False  # the learning rate has fallen far
    _place: int = 0
    _more: int = 0  # rounds, beyond those of the options
    steps: int = 0  # in this phase
    _seen_us: list[float] = field(default_factory=list)
    _profiled_us: list[float] | None = None  # steps of the baseline, while it was profiled
    _trials: dict[tuple[str, bool], list[list[float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.restart(0)

    @property
    def phase(self) -> Phase:
        """The current one."""
        return self.phases[self._place]

    @property
    def trials(self) -> Mapping[tuple[str, bool], float]:
        """Of each candidate (policy, late) the median step time, of this rank, in microseconds."""
        steps = {who: [us for one in rounds for us in one] for who, rounds in self.rounds.items()}
        return {who: median(us) for who, us in steps.items() if us}

    def named_trials(self) -> dict[str, float]:
        """The same, by names for people."""
        return {name + (" (late)" if late else ""): us for (name, late), us in self.trials.items()}

    @property
    def rounds(self) -> Mapping[tuple[str, bool], Sequence[Sequence[float]]]:
        """Of each candidate, round by round, the step times of this rank, in microseconds. The
        least harmful is the first. The profile stands for a turn of the baseline that is still to
        come, or that it did not need."""
        profiled = {} if self._profiled_us is None else {(BASELINE, False): [self._profiled_us]}
        rounds = {**profiled, **self._trials}
        return {who: rounds[who] for who in sorted(rounds, key=_harm)}

    def restart(self, steps_done: int) -> None:
        """Everything has to be measured again."""
        self.done = steps_done
        self._trials.clear()
        self._profiled_us = None
        ahead = planned_phases(self.policy, self.config, steps_done, self.purpose, calm=self.calm)
        self._begin(ahead)

    def rest(self) -> None:
        """Nothing is measured."""
        self._begin((Phase("settled", BASELINE),))

    def try_late(self) -> None:
        """What runs takes turns with late updates, once gradients were looked at. Nothing else has
        changed, so nothing else is measured again."""
        running = self.phase.policy
        candidates = (self.phase.who, (_SYNCHRONOUS, True))
        for who in candidates:
            self._trials.pop(who, None)
        # Of stock Horovod's gradients nobody sees enough.
        looks = Phase("warmup", _SYNCHRONOUS if running == BASELINE else running, steps=LOOKS)
        self._begin((looks, *_trial_phases(candidates, self.config)))

    def _begin(self, phases: tuple[Phase, ...]) -> None:
        self.phases = phases
        self._place = self.steps = self._more = 0
        self._seen_us.clear()

    def step(self, step_us: float) -> bool:
        """A step has ended. True when its phase has ended with it."""
        self.steps += 1
        if self.phase.kind in ("profile", "trial") and self.steps > self._uncounted:
            self._seen_us.append(step_us)
        return self.steps == self.phase.steps

    @property
    def _uncounted(self) -> int:
        """The first steps of a profile are of a cold machine, the first of a trial fills the
        link."""
        return max(1, self.config.profile_warmup_steps) if self.phase.kind == "profile" else 1

    @property
    def may_end(self) -> bool:
        """Whether the profile ends here, if steps are steady on all ranks. People who ask for one
        get all of it; and no update comes late any sooner."""
        enough = self._uncounted + _STEADY_STEPS <= self.steps < self.phase.steps
        in_time = self.purpose == "train" and not any(phase.late for phase in self._ahead)
        return enough and in_time and self.phase.kind == "profile"

    @property
    def is_steady(self) -> bool:
        """Whether the last steps of this phase took equally long, but for one at most: anything may
        have held that up."""
        seen = sorted(self._seen_us[-_STEADY_STEPS:])
        return len(seen) == _STEADY_STEPS and seen[-2] <= (1.0 + _STEADY) * seen[0]

    def catch_up(self, steps: int) -> bool:
        """Another rank has run so many steps of this phase. True if it is over."""
        self.steps = steps
        return 0 < self.phase.steps <= steps

    @property
    def undecided(self) -> bool:
        """Whether this is the last trial, after which the next phase must be chosen."""
        return self.phase.kind == "trial" and self._place + 1 == len(self.phases)

    def end_phase(self) -> None:
        """Books what the current phase has measured."""
        profiled = self.phase.kind == "profile" and self.phase.who == (BASELINE, False)
        if profiled and any(phase.kind == "trial" for phase in self._ahead):
            self._profiled_us = [*self._seen_us]
        if self.phase.kind == "trial":
            self._trials.setdefault(self.phase.who, []).append([*self._seen_us])
        self._seen_us.clear()

    @property
    def may_drop(self) -> bool:
        """Whether turns lie ahead that may turn out to be of no use. People who compare want
        all."""
        trying = self.phase.kind == "trial" and not self.undecided
        return trying and self.purpose == "train"

    @property
    def untried(self) -> frozenset[tuple[str, bool]]:
        """Of those that are exact whatever may be rounded, whoever had no turn yet."""
        ahead = {phase.who for phase in self._ahead} - set(self._trials)
        return frozenset(who for who in ahead if who[0] in _EXACT)

    @property
    def _ahead(self) -> tuple[Phase, ...]:
        return self.phases[self._place + 1 :]

    def plan_ahead(self, step_us: float) -> Phase | None:
        """The late phase ahead, if there is time to make its plan while this one warms up: nothing
        is measured then that it could disturb."""
        if self.phase.kind != "warmup" or self.phase.steps * step_us < LEAST_US:
            return None
        return next((phase for phase in self._ahead if phase.late), None)

    def drop(self, slow: Container[tuple[str, bool]]) -> None:
        """These have no further turn; nor has one that had its turn and is left alone."""
        done = self.phases[: self._place + 1]
        left = tuple(phase for phase in self._ahead if phase.who not in slow)
        trials = (phase.who for phase in (*done, *left) if phase.kind == "trial")
        rivals = {who for who in trials if who not in slow}
        alone = len(rivals) == 1 and rivals <= set(self._trials)
        self.phases = done if alone else (*done, *left)

    def proceed(self) -> None:
        """On to the next phase."""
        self._place += 1
        self.steps = 0

    def try_again(self, candidates: Sequence[tuple[str, bool]]) -> bool:
        """Another round of these; False: there have been enough of them."""
        enough = self._more >= _MORE_ROUNDS or self.purpose != "train"
        if not enough:
            self._more += 1
            self.phases = (*self.phases, *_one_round(candidates, self.config))
            self.proceed()
        return not enough

    def keep(self, policy: str, late: bool) -> None:
        """The choice is made."""
        self.phases = (*self.phases, Phase("settled", policy, late=late))
        self.proceed()


def choose(times_us: Mapping[tuple[str, bool], float], min_gain: float) -> tuple[str, bool]:
    """The fastest, if it gains enough over the baseline; and if it is late, over those in time."""
    late_us = {who: us for who, us in times_us.items() if who[1]}
    in_time_us = {who: us for who, us in times_us.items() if not who[1]}
    kept = _fastest((BASELINE, False), in_time_us, min_gain)
    return _fastest(kept, {kept: times_us[kept], **late_us}, min_gain)


def _fastest(
    before: tuple[str, bool], times_us: Mapping[tuple[str, bool], float], min_gain: float
) -> tuple[str, bool]:
    """The fastest, unless it gains less than that over `before`.

    Of several that are within half of it of the fastest, the one listed first: the simpler one.
    """
    fastest_us = min(times_us.values())
    if fastest_us >= times_us[before] * (1.0 - min_gain):
        return before
    near_us = fastest_us * (1.0 + min_gain / 2)
    return next(who for who, us in times_us.items() if us <= near_us and who != before)
