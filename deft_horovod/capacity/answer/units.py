"""Machines in words."""

from __future__ import annotations

from collections.abc import Sequence

from deft_horovod.capacity.problem.demand import Unit
from deft_horovod.capacity.problem.machine_kind import MachineKind


def units_text(kinds: Sequence[MachineKind], units: Sequence[Unit]) -> str:
    """All of one kind; their numbers from 1 on, runs of them shortened."""
    numbers = sorted(unit.number + 1 for unit in units)
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    told = (f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
    return f"{kinds[units[0].kind].name} {', '.join(told)}"
