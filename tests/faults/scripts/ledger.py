"""Conservation as tensors: which steps' gradients have moved the parameters of a ledger.

Each kept step moves every trained element by BASE**digit, so the displacement, read in that base,
counts how often each step was applied: once, whatever was late, merged, cut, or in whatever order.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from torch import nn

BASE: Final = 4
DIGITS: Final = 10  # in this base float32 tells so many steps apart, and parts of them


def digits(amount: float, base: int = BASE) -> list[int] | None:
    """How often each step is in it, from the first one on; None: it is no sum of whole steps."""
    if amount < 0 or amount != int(amount):
        return None
    found, rest = [], int(amount)
    while rest:
        found.append(rest % base)
        rest //= base
    return found


class Books:
    """What was entered since the books were opened, for each parameter of a model."""

    def __init__(self, model: nn.Module) -> None:
        self._names = [name for name, _ in model.named_parameters()]
        self.open(model)

    def open(self, model: nn.Module) -> None:
        """Closes what was and begins anew."""
        self._origin = [p.detach().clone() for p in model.parameters()]
        self._entered = [[0] * DIGITS for _ in self._origin]

    def enter(self, step: int, trained: list[bool]) -> None:
        """A step was kept."""
        for counts, counted in zip(self._entered, trained, strict=True):
            counts[step % DIGITS] += counted

    def state(self) -> Any:
        return copy.deepcopy((self._origin, self._entered))

    def load(self, state: Any) -> None:
        self._origin, self._entered = copy.deepcopy(state)

    def check(self, model: nn.Module, dropped: int) -> list[str]:
        """With nothing in flight: what is not as it was entered. Where gradients were dropped and
        counted, some may be missing; nothing may be there twice, or in part."""
        wrong = []
        rows = zip(self._names, model.parameters(), self._origin, self._entered, strict=True)
        for name, parameter, origin, entered in rows:
            moved = origin - parameter.detach()
            for amount in moved.unique().tolist():
                trouble = _trouble(digits(amount), entered, dropped)
                if trouble:
                    wrong.append(f"{name} was moved by {amount}: {trouble}")
        return wrong


def _trouble(applied: list[int] | None, entered: list[int], dropped: int) -> str:
    if applied is None:
        return "no sum of averaged gradients"
    longest = max(len(applied), len(entered))
    applied = applied + [0] * (longest - len(applied))
    entered = entered + [0] * (longest - len(entered))
    pairs = list(enumerate(zip(applied, entered, strict=True)))
    twice = [digit for digit, (have, due) in pairs if have > due]
    missing = [digit for digit, (have, due) in pairs if have < due]
    if twice:
        return f"applied more often than produced: digits {twice} of {applied}, due {entered}"
    if missing and not dropped:
        return f"lost without being counted: digits {missing} of {applied}, due {entered}"
    return ""
