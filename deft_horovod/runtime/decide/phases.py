"""The course of a training job: which policy runs when, and what is measured on the way.

A policy that needs nothing but a first impression runs from the second step on. One that plans from
measurements starts with the stock way while the profile is taken; plans that are late on purpose
wait for the warm-up; `auto` lets its candidates take turns and keeps the fastest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Literal

from deft_horovod import policies
from deft_horovod.comparison import STOCK
from deft_horovod.config import Config
from deft_horovod.policies.limits import limits
from deft_horovod.runtime.job_request import Purpose

_SYNCHRONOUS: Final = "least_stale"
_LOOKS: Final = 40  # steps whose gradients are judged; the guard wants 20, twice is less noisy
_CANDIDATES: Final = (STOCK, "bucket", "priority", _SYNCHRONOUS)


@dataclass(frozen=True)
class Leg:
    """A run of steps with one policy."""

    kind: Literal["profile", "warmup", "trial", "settled"]
    policy: str
    late: bool = False  # whether its plans may apply updates late, as far as the options allow
    steps: int = 0  # 0: to the end of training


def itinerary(
    policy: str, config: Config, steps_done: int, purpose: Purpose = "train"
) -> tuple[Leg, ...]:
    """The legs that lie ahead. After trials the last leg is still to be chosen."""
    profiled = max(1, config.profile_warmup_steps) + config.profile_steps
    if purpose == "profile":
        return (Leg("profile", STOCK, steps=profiled), Leg("settled", STOCK))
    if purpose == "train" and (not policies.get(policy).measures or config.plan_file):
        return (Leg("settled", policy, late=bool(config.plan_file)),)
    legs = [Leg("profile", STOCK, steps=profiled)]
    late = limits(policy, config).late
    wait = config.warmup_steps - steps_done - profiled
    if late and wait > 0 and purpose == "train":
        legs.append(Leg("warmup", _SYNCHRONOUS, steps=wait))
    if purpose == "train" and policy != "auto":
        return (*legs, Leg("settled", policy, late=late))
    return (*legs, *_trial_legs(_candidates(policy, late), config))


def _trial_legs(candidates: Iterable[tuple[str, bool]], config: Config) -> tuple[Leg, ...]:
    return config.trial_rounds * tuple(
        Leg("trial", *who, steps=1 + config.trial_steps) for who in candidates
    )


def _candidates(policy: str, late: bool) -> list[tuple[str, bool]]:
    """Policies, and whether they may be late: what `auto` chooses from, or stock and one other."""
    if policy != "auto":
        return [(STOCK, False), (policy, late)]
    candidates = [(name, False) for name in _CANDIDATES]
    return [*candidates, (_SYNCHRONOUS, True)] if late else candidates


@dataclass
class Course:
    """Where a job is on its way."""

    policy: str
    config: Config
    legs: tuple[Leg, ...] = ()
    done: int = 0  # steps before the first leg
    purpose: Purpose = "train"
    _place: int = 0
    steps: int = 0  # in this leg
    _seen_us: list[float] = field(default_factory=list)
    _trials: dict[tuple[str, bool], list[list[float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.restart(0)

    @property
    def leg(self) -> Leg:
        """The current one."""
        return self.legs[self._place]

    @property
    def trials(self) -> Mapping[tuple[str, bool], float]:
        """Of each candidate (policy, late) the median step time, of this rank, in microseconds."""
        return {
            key: median(us for one in rounds for us in one) for key, rounds in self._trials.items()
        }

    def named_trials(self) -> dict[str, float]:
        """The same, by names for people."""
        return {name + (" (late)" if late else ""): us for (name, late), us in self.trials.items()}

    @property
    def rounds(self) -> Mapping[tuple[str, bool], Sequence[Sequence[float]]]:
        """Of each candidate, round by round, the step times of this rank, in microseconds."""
        return self._trials

    def restart(self, steps_done: int) -> None:
        """Everything has to be measured again."""
        self.done = steps_done
        self._trials.clear()
        self._begin(itinerary(self.policy, self.config, steps_done, self.purpose))

    def rest(self) -> None:
        """There is nothing to measure or to plan."""
        self._begin((Leg("settled", STOCK),))

    def try_late(self) -> None:
        """What runs takes turns with late updates, once gradients were looked at. Nothing else has
        changed, so nothing else is measured again."""
        candidates = ((self.leg.policy, self.leg.late), (_SYNCHRONOUS, True))
        for who in candidates:
            self._trials.pop(who, None)
        looks = Leg("warmup", _SYNCHRONOUS, steps=_LOOKS)
        self._begin((looks, *_trial_legs(candidates, self.config)))

    def _begin(self, legs: tuple[Leg, ...]) -> None:
        self.legs = legs
        self._place = self.steps = 0
        self._seen_us.clear()

    def step(self, step_us: float) -> bool:
        """A step has ended. True when its leg has ended with it."""
        self.steps += 1
        if self.leg.kind == "trial" and self.steps > 1:  # the first one still fills the link
            self._seen_us.append(step_us)
        return self.steps == self.leg.steps

    def catch_up(self, steps: int) -> bool:
        """Another rank has run so many steps of this leg. True if it is over."""
        self.steps = steps
        return 0 < self.leg.steps <= steps

    @property
    def undecided(self) -> bool:
        """Whether this is the last trial, so that somebody has to choose what comes next."""
        return self.leg.kind == "trial" and self._place + 1 == len(self.legs)

    def end_trial(self) -> None:
        """Books what the current leg has measured."""
        if self.leg.kind == "trial":
            self._trials.setdefault((self.leg.policy, self.leg.late), []).append([*self._seen_us])
        self._seen_us.clear()

    def proceed(self) -> None:
        """On to the next leg."""
        self._place += 1
        self.steps = 0

    def settle(self, policy: str, late: bool) -> None:
        """The choice is made."""
        self.legs = (*self.legs, Leg("settled", policy, late=late))
        self.proceed()


def choose(times_us: Mapping[tuple[str, bool], float], min_gain: float) -> tuple[str, bool]:
    """The fastest, unless it gains less over the stock way than is asked for.

    Of several that are within half of that of the fastest, the one listed first: the simpler one.
    """
    stock_us = times_us[STOCK, False]
    fastest_us = min(times_us.values())
    if fastest_us >= stock_us * (1.0 - min_gain):
        return STOCK, False
    near_us = fastest_us * (1.0 + min_gain / 2)
    return next(key for key, us in times_us.items() if us <= near_us and key != (STOCK, False))


def slowest(of_ranks: Sequence[Mapping[tuple[str, bool], float]]) -> dict[tuple[str, bool], float]:
    """A synchronous step is as slow as its slowest rank."""
    return {key: max(times[key] for times in of_ranks) for key in of_ranks[0]}
