"""When a training gets to a loss. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any, Final

# Validations, as in the studies of accuracy: with a constant rate one alone says little.
AVERAGED: Final = 5
MARGIN: Final = 0.01  # above stock Horovod's final loss

Done = Mapping[str, Any]  # a training; its curve has steps, seconds, and the loss of a validation


def levelled(one: Done, averaged: int = AVERAGED) -> Done:
    """The same with the mean of so many validations up to each, from where there are as many."""
    curve = one["curve"]
    losses = [loss for _, _, loss in curve]
    window = min(averaged, len(curve))
    means = [
        (*curve[end - 1][:2], statistics.fmean(losses[end - window : end]))
        for end in range(window, len(curve) + 1)
    ]
    return {**one, "curve": means}


def after_as_many_steps(arms: Mapping[str, Done], name: str) -> tuple[int, float, float]:
    """Steps, seconds and loss where stock Horovod ends; ours may have trained beyond."""
    steps = arms["stock"]["curve"][-1][0]
    number, seconds, loss = next(row for row in arms[name]["curve"] if row[0] == steps)
    return int(number), float(seconds), float(loss)


def target_of(stock: Done) -> float:
    return float(stock["curve"][-1][2]) * (1.0 + MARGIN)


def seconds_to(one: Done, target: float) -> float | None:
    """When its loss falls to the target for the first time, between evaluations on a line."""
    before: tuple[float, float] | None = None
    for _, seconds, loss in one["curve"]:
        if loss <= target:
            if before is None:
                return float(seconds)
            share = (before[1] - target) / (before[1] - loss)
            return float(before[0] + share * (seconds - before[0]))
        before = seconds, loss
    return None


def speed(arms: Mapping[str, Done], name: str, over: str = "stock") -> float | None:
    """How many times faster one arm gets to the target than another."""
    target = target_of(arms["stock"])
    mine, theirs = seconds_to(arms[name], target), seconds_to(arms[over], target)
    return theirs / mine if mine and theirs else None


def speed_at_most(arms: Mapping[str, Done], name: str, over: str = "stock") -> float | None:
    """As if it did with its last step where it never gets there. None: the other one does not."""
    target = target_of(arms["stock"])
    theirs = seconds_to(arms[over], target)
    mine = seconds_to(arms[name], target) or float(arms[name]["curve"][-1][1])
    return theirs / mine if theirs else None
