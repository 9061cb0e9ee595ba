"""Times work on a device: arms that take turns, the median of the rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

Work = Callable[[], Any]


def finish(device: str) -> None:
    """Returns when all work given to the device is done."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def time_us(work: Work, repeats: int, device: str) -> float:
    """Of one call, on the device's own clock where it has one."""
    if device != "cuda":
        began_s = time.perf_counter()
        for _ in range(repeats):
            work()
        return (time.perf_counter() - began_s) / repeats * 1e6
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        work()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / repeats * 1e3


def repeats_for(work: Work, device: str, wanted_us: float, most: int = 1000) -> int:
    """So many calls that a round takes about that long."""
    work()
    finish(device)
    once_us = max(time_us(work, 1, device), 0.1)
    return max(1, min(most, round(wanted_us / once_us)))


def interleaved(
    arms: Mapping[str, Work], device: str, rounds: int, wanted_us: float = 20_000
) -> dict[str, dict[str, float]]:
    """Microseconds of a call of each arm: who begins changes from round to round."""
    repeats = {name: repeats_for(work, device, wanted_us) for name, work in arms.items()}
    names = list(arms)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            times[name].append(time_us(arms[name], repeats[name], device))
    return {name: spread(values) for name, values in times.items()}


def spread(values: list[float]) -> dict[str, float]:
    rounded = [round(value, 3) for value in values]
    return {"median": median(rounded), "min": min(rounded), "max": max(rounded)}
