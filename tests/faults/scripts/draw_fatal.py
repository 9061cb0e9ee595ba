"""A seed becomes a fault with a job of its own, as a rule its last: where, when, how it happens."""

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
    "elastic error",
    "elastic metric",
    "elastic killed",
    "link stalls",
    "link lost",
)
ELASTIC_POLICIES: Final = (
    *("stock", "bucket", "wfbp", "priority", "least_stale", "deft", "auto", "ddp", "dear"),
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
    elastic_policy: str
    script: Script

    def title(self) -> str:
        """In one line."""
        if self.kind.startswith("elastic"):
            return f"{self.kind}, {self.elastic_policy}"
        if self.kind == "link stalls":
            return f"{self.kind}, trainings {', '.join(map(str, self.trainings()))}"
        return f"{self.kind}, rank {self.rank}, step {self.step}: {self.script.title()}"

    def trainings(self) -> list[int]:
        """Seeds of what runs over a link that stalls."""
        return [self.seed * 100 + number for number in range(6)]


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
        elastic_policy=r.choice(ELASTIC_POLICIES),
        script=script,
    )
