"""A seed becomes a fault that a job cannot survive: where, when and how it happens."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Final

from tests.faults.scripts.draw import RANKS, Script, draw

KINDS: Final = (
    "killed",
    "killed in forward",
    "killed in backward",
    "stopped too long",
    "exception in forward",
    "exception in backward",
    "exception in a hook",
    "exit in the middle",
    "interrupted",
    "ended early",
    "never begins",
)
MORE_STEPS: Final = 2000  # training goes on until the fault ends it


@dataclass(frozen=True)
class Fatal:
    """A script, and the fault that ends it on one rank."""

    seed: int
    kind: str
    rank: int
    step: int
    delay_s: float  # for what comes at any moment of the step
    script: Script

    def title(self) -> str:
        """In one line."""
        return f"{self.kind}, rank {self.rank}, step {self.step}: {self.script.title()}"


def draw_fatal(seed: int) -> Fatal:
    """The fault of a seed. Kinds take turns."""
    r = random.Random(f"fatal {seed}")
    kind = KINDS[seed % len(KINDS)]
    number, script = seed * 1000, draw(seed * 1000)
    while script.closure or script.family == "gan":  # one model, one backward
        number += 1
        script = draw(number)
    # Alone, so that the fault is what ends it.
    script = replace(script, events=(), uneven=(), dtype="float32", scaler="none", steps=MORE_STEPS)
    first = 0 if kind == "never begins" else 1
    return Fatal(
        seed=seed,
        kind=kind,
        rank=r.randrange(RANKS),
        step=0 if kind == "never begins" else r.randint(first, 25),
        delay_s=r.uniform(0.0, 0.3),
        script=script,
    )
