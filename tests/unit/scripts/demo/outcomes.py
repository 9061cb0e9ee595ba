"""What the demo might have measured."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.demo.outcome import ALONE, TITLES, Outcome, Trained

ROUNDS = 8
LOSSES = [5.0 - 0.05 * step for step in range(40)]


def trained(ms: float, losses: Sequence[float] = LOSSES, same: bool = True) -> Trained:
    rounds = [[ms * (1 + 0.001 * number)] * 3 for number in range(ROUNDS)]
    return Trained(rounds, list(losses), same)


def outcome(**of: Trained) -> Outcome:
    arms = {name: trained(100.0) for name in TITLES} | {ALONE: trained(80.0)} | of
    return Outcome("500 Mbit/s", 2, 12_000_000, arms)
