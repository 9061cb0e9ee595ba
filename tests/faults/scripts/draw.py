"""A seed becomes a training script: a frozen record that says everything about it.

Pure: the same seed gives the same script on every rank and machine. Only what a script of stock
Horovod may do as well stands in it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

T = TypeVar("T")

RANKS: Final = 2
FEWEST_STEPS, MOST_STEPS = 20, 60

# "ledger" has gradients that do not depend on parameters: they say which steps were applied.
FAMILIES: Final = {"mlp": 3, "cnn": 2, "tied": 2, "unused": 2, "gan": 2, "ledger": 4}
OPTIMIZERS: Final = (
    "sgd",
    "momentum",
    "nesterov",
    "adam",
    "adamw",
    "amsgrad",
    "nadam",
    "radam",
    "adamax",
    "rmsprop",
    "adagrad",
    "adadelta",
)
TENSOR_RATES: Final = ("sgd", "momentum", "nesterov", "adam", "adamw")
POLICIES: Final = {
    "auto": 5,
    "deft": 4,
    "least_stale": 4,
    "priority": 3,
    "bucket": 2,
    "stock": 1,
    "wfbp": 1,
    "by_hand": 4,
    "ddp": 1,
    "dear": 1,
}
MAY_BE_LATE: Final = ("auto", "deft", "least_stale", "by_hand")
DELAYS: Final = (None, 0, 1, 1, 2)
MERGES: Final = (None, 1, 2, 4)
CORRECTIONS: Final = (None, "none", "local", "momentum", "previous", "own_share")
BUDGETS: Final = (None, None, None, 0.02, 1000.0)
SCHEDULES: Final = ("none", "none", "halves", "cosine", "warmup", "plateau")
SCALERS: Final = ("none", "none", "plain", "recipe")
CLEARINGS: Final = ("before", "before", "zeros", "model", "after")
BRANCHES: Final = ("never", "odd steps", "one rank", "in turn")

# Kinds of events. Those in READS have no effect with a stock optimizer, so they may have none here.
READS: Final = (
    "read param_groups",
    "read state",
    "read rate in a thread",
    "read repr and stats",
    "read state_dict",
    "read gradients",
    "read parameters",
    "read rates of the schedule",
)
READ_PLACES: Final = (
    "before forward",
    "after forward",
    "between passes",
    "after backward",
    "after step",
)
CHANGES: Final = (
    "flush",
    "flush before step",
    "discard",
    "skip before backward",
    "freeze",
    "unfreeze",
    "save",
    "load",
    "resume",
    "evaluate",
    "copy",
)
FAULTS: Final = (
    "inf gradient",
    "nan gradient",
    "raise in forward",
    "raise in backward",
    "raise in a hook",
    "stop",
    "late rank",
    "fork that evaluates",
    "fork that loads data",
)


@dataclass(frozen=True)
class Event:
    """Something besides plain training."""

    step: int
    kind: str
    rank: int | None = None  # None: all of them
    place: str = ""


@dataclass(frozen=True)
class Script:
    """One training."""

    seed: int
    family: str
    dtype: str
    optimizer: str
    tensor_rate: bool
    policy: str
    max_delay: int | None
    max_merge: int | None
    correction: str | None
    accuracy_budget: float | None
    passes: int
    average: bool
    scaler: str
    clip: bool
    schedule: str
    schedule_of_inner: bool
    clearing: str
    branch: str
    closure: bool
    ema: bool
    steps: int
    check_every: int
    uneven: tuple[int, ...]  # batches of each rank in an epoch at the end; empty: there is none
    events: tuple[Event, ...]

    @property
    def may_be_late(self) -> bool:
        """Whether options allow an update to come after its step. Where they do, it is seen."""
        if self.policy not in MAY_BE_LATE:
            return False
        return not (self.max_delay == 0 and self.max_merge == 1)

    def at(self, step: int) -> tuple[Event, ...]:
        """The events of a step."""
        return tuple(event for event in self.events if event.step == step)

    def kinds(self) -> tuple[str, ...]:
        """The kinds of its events, each once."""
        uneven = ("uneven data",) if self.uneven else ()
        return tuple(sorted({event.kind for event in self.events})) + uneven

    def title(self) -> str:
        """In one line."""
        words = [self.family, self.dtype, self.optimizer, self.policy]
        for name in ("max_delay", "max_merge", "correction", "accuracy_budget"):
            value = getattr(self, name)
            words += [] if value is None else [f"{name}={value}"]
        words += [f"passes={self.passes}"] if self.passes > 1 else []
        words += [f"scaler {self.scaler}"] if self.scaler != "none" else []
        words += ["clip"] if self.clip else []
        words += [f"schedule {self.schedule}"] if self.schedule != "none" else []
        words += ["tensor rate"] if self.tensor_rate else []
        words += ["closure"] if self.closure else []
        return ", ".join(words)


def draw(seed: int) -> Script:
    """The script of a seed."""
    r = random.Random(f"script {seed}")
    family = _weighted(r, FAMILIES)
    ledger = family == "ledger"
    closure = family != "gan" and not ledger and r.random() < 0.08
    optimizer = "sgd" if ledger else r.choice(OPTIMIZERS)
    policy = _weighted(r, POLICIES)
    limits = _limits(r, policy)
    plain = closure or ledger
    scaler = "none" if closure else r.choice(SCALERS)
    dtype = _dtype(r, family, policy, scaler)
    joins = r.random() < 0.12 and family != "gan" and scaler == "none"
    uneven = tuple(r.sample(range(7), RANKS)) if joins else ()
    if policy == "dear":
        uneven = ()  # Horovod's reduce-scatter does not know join()
    schedule = "none" if plain or uneven else r.choice(SCHEDULES)
    steps = r.randint(FEWEST_STEPS, MOST_STEPS)
    script = Script(
        seed=seed,
        family=family,
        dtype=dtype,
        optimizer=optimizer,
        tensor_rate=optimizer in TENSOR_RATES and dtype == "float32" and r.random() < 0.2,
        policy=policy,
        **limits,
        passes=1 if closure else r.choice((1, 1, 1, 2, 3)),
        average=ledger or r.random() < 0.8,
        scaler=scaler,
        clip=not plain and scaler != "plain" and r.random() < 0.3,
        schedule=schedule,
        schedule_of_inner=r.random() < 0.3,
        clearing="before" if closure else r.choice(CLEARINGS),
        branch=r.choice(BRANCHES),
        closure=closure,
        ema=not uneven and r.random() < 0.25,
        steps=steps,
        check_every=r.choice((1, 3, 7, 60)),
        uneven=uneven,
        events=(),
    )
    # What is loaded was saved before, be it in the same step.
    order = sorted(_events(r, script), key=lambda e: (e.step, e.kind == "load", e.kind, e.place))
    events = tuple(order)
    return Script(**{**script.__dict__, "events": events})


def _weighted(r: random.Random, weights: dict[str, int]) -> str:
    return r.choices(list(weights), list(weights.values()))[0]


def _dtype(r: random.Random, family: str, policy: str, scaler: str) -> str:
    if family == "ledger" or policy == "by_hand" or scaler != "none":
        return "float32"
    return r.choices(("float32", "float64", "bfloat16"), (8, 1, 1))[0]


def _limits(r: random.Random, policy: str) -> dict[str, Any]:
    if policy not in MAY_BE_LATE:
        return dict.fromkeys(("max_delay", "max_merge", "correction", "accuracy_budget"))
    by_hand = policy == "by_hand"
    limits: dict[str, int | None]
    correction = r.choice(("none", "local")) if by_hand else r.choice(CORRECTIONS)
    if by_hand:
        limits = {"max_delay": r.choice((0, 1, 2)), "max_merge": r.choice((1, 2, 4))}
        return {**limits, "correction": correction, "accuracy_budget": None}
    if policy != "deft" and r.random() < 0.25:
        limits = {"max_delay": 0, "max_merge": 1}
    else:
        delays = [d for d in DELAYS if policy != "deft" or d != 0]  # it refuses to be in time
        limits = {"max_delay": r.choice(delays), "max_merge": r.choice(MERGES)}
    return {**limits, "correction": correction, "accuracy_budget": r.choice(BUDGETS)}


# --- events --------------------------------------------------------------------------------------
def _events(r: random.Random, script: Script) -> list[Event]:
    events = _reads(r, script) + _changes(r, script) + _faults(r, script)
    return [event for event in events if _possible(script, event)]


def _reads(r: random.Random, script: Script) -> list[Event]:
    events = []
    for _ in range(r.choice((0, 1, 2, 4, 8))):
        rank = r.choice((None, *range(RANKS)))
        step, kind, place = r.randrange(script.steps), r.choice(READS), r.choice(READ_PLACES)
        # In every step, so that a loop that always looks is there as well.
        steps = range(script.steps) if r.random() < 0.2 else (step,)
        events += [Event(one, kind, rank, place) for one in steps]
    return events


def _changes(r: random.Random, script: Script) -> list[Event]:
    events = []
    for kind in r.sample(CHANGES, r.choice((0, 1, 2, 3, 4))):
        if kind in {"unfreeze", "load"}:
            continue  # come with their counterparts
        step = r.randrange(script.steps)
        later = r.randint(step, script.steps - 1)
        rank = r.randrange(RANKS) if kind in ("evaluate", "copy") and r.random() < 0.3 else None
        events.append(Event(step, kind, rank))
        if kind == "freeze":
            events.append(Event(later, "unfreeze"))
        if kind == "save":
            events.append(Event(later, "load"))
        if kind in ("flush", "evaluate", "discard") and r.random() < 0.5:
            events.append(Event(later, kind, rank))
    return events


def _faults(r: random.Random, script: Script) -> list[Event]:
    events = []
    for kind in r.sample(FAULTS, r.choice((0, 0, 1, 1, 2))):
        rank: int | None = r.randrange(RANKS)
        if kind.startswith("raise"):
            rank = None  # on one rank alone it ends the job: no other rank can know of it
        events.append(Event(r.randrange(script.steps), kind, rank))
    return events


def _possible(script: Script, event: Event) -> bool:
    """Whether the script would work with stock Horovod, too."""
    if event.kind in ("inf gradient", "nan gradient"):
        # Without a scaler a script looks at the averages by itself; late ones are another step's.
        return script.scaler != "none" or not (script.may_be_late or script.closure)
    if script.closure:
        inside = event.place in ("after forward", "between passes", "after backward")
        outside = ("discard", "flush before step", "freeze", "unfreeze")
        return not inside and event.kind not in outside and not event.kind.startswith("raise")
    if script.family == "gan" or script.policy == "by_hand":  # a plan's file is of one model
        return event.kind not in ("freeze", "unfreeze")
    return True


def steps_between(events: Sequence[Event], kind: str, other: str) -> set[int]:
    """The steps from each event of a kind up to the next one of the other kind."""
    inside, began = set[int](), None
    for event in sorted(events, key=lambda e: e.step):
        if event.kind == kind and began is None:
            began = event.step
        elif event.kind == other and began is not None:
            inside |= set(range(began, event.step))
            began = None
    return inside
