"""What averaged gradients tell about training: how large they are, how noisy, how fast they turn.

The squares of this rank's own gradient and of the average separate signal from noise, so no message
is needed. A sample of the elements of the largest parameters is looked at; every parameter counts
by its size. It is taken in runs of neighbours, as memory comes in lines: single elements would take
several times as long. Nothing is read back from an accelerator before it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import torch

from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.preserver.cost import Gradients
from deft_horovod.runtime.ranks.named_parameters import NamedParameter

_PARAMETERS: Final = 64
_RUN: Final = 16  # neighbours; those of a float32 fill a line of memory
_RUNS: Final = 256  # of each
_REMEMBERED: Final = 64  # steps


class GradientStatistics:
    """Sums over steps, whatever plans ran in them."""

    def __init__(self, ranks: int, *, summed: bool) -> None:
        self._ranks = ranks
        self._scale = float(ranks) if summed else 1.0  # what reducing multiplies equal ones by
        self._strides: dict[int, int] = {}  # of the slots that are looked at, from run to run
        self._rests = False
        self.pieces: dict[int, int] = {}  # buckets that hold a part of it
        self._own: dict[int, dict[int, torch.Tensor]] = {}  # norms, by step and slot
        self._average: dict[int, tuple[int, torch.Tensor]] = {}  # the latest sample, and its step
        self._device: torch.device | None = None
        self._weights: dict[tuple[int, ...], torch.Tensor] = {}
        self._sums: torch.Tensor | None = None  # squares: own, average, change
        self._steps: set[int] = set()
        self._counted = 0

    def follow(self, members: Sequence[NamedParameter], plan: Plan) -> None:
        """Another plan runs from now on."""
        self._rests = False
        self._own.clear()
        self._average.clear()
        self._counted += len(self._steps)
        self._steps.clear()
        holds = Counter(chain.from_iterable(contents(plan.slots, plan.buckets)))
        by_size = sorted(range(len(members)), key=lambda slot: -members[slot].tensor.numel())
        chosen = [s for s in by_size[:_PARAMETERS] if members[s].tensor.numel()]
        device = members[chosen[0]].tensor.device if chosen else None
        if device != self._device:
            self._device = device
            self.begin_anew()
        chosen = [slot for slot in chosen if members[slot].tensor.device == device]
        self._weights.clear()
        self._strides = {s: max(_RUN, -(-members[s].tensor.numel() // _RUNS)) for s in chosen}
        self.pieces = {slot: holds[slot] for slot in chosen}

    def note_own(self, step: int, gradients: Sequence[torch.Tensor | None]) -> None:
        """What this rank has contributed in a step, by slot."""
        if self._rests:
            return
        samples = self._samples(gradients, self._strides)
        if samples:
            norms = torch._foreach_norm(list(samples.values()))  # noqa: SLF001
            self._own[step] = dict(zip(samples, norms, strict=True))
        self._own.pop(step - _REMEMBERED, None)

    def arrived(
        self, step: int, gradients: Sequence[torch.Tensor | None], pieces: Mapping[int, int]
    ) -> None:
        """Averages of a step, by slot; of the parameters that so many buckets brought a part of."""
        if self._rests:
            return
        own = self._own.get(step, {})
        whole = [slot for slot in own if pieces.get(slot) == self.pieces[slot]]
        samples = self._samples(gradients, whole)
        before = {s: self._average[s][1] for s in samples if self._follows(s, step)}
        self._average.update({slot: (step, sample) for slot, sample in samples.items()})
        if not before:
            return
        now = [samples[slot] for slot in before]
        change = torch._foreach_sub(now, list(before.values()))  # noqa: SLF001
        norms = [own[slot] for slot in before]
        norms += torch._foreach_norm([*now, *change])  # noqa: SLF001
        squares = torch.stack(norms).reshape(3, -1).square()
        self._add(squares @ self._weights_of(tuple(before)), step)

    def seen(self, fewest_steps: int) -> Gradients | None:
        """What was seen since the last beginning; None: too few steps to say."""
        steps = self._counted + len(self._steps)
        if self._sums is None or steps < fewest_steps:
            return None
        own, average, change = (value / steps for value in self._sums.tolist())
        return Gradients(own * self._scale**2, average, change, self._ranks, steps)

    def begin_anew(self) -> None:
        """Forgets what was seen."""
        self._rests, self._sums, self._counted = False, None, 0
        self._steps.clear()
        self._own.clear()

    def rest(self) -> None:
        """Enough was seen: looks at nothing until another beginning."""
        self._rests = True

    def _weights_of(self, slots: tuple[int, ...]) -> torch.Tensor:
        """An element of a sample stands for as many as there are from run to run, over those of a
        run."""
        if slots not in self._weights:
            weights = [self._strides[slot] / _RUN for slot in slots]
            self._weights[slots] = torch.tensor(weights, dtype=torch.float32, device=self._device)
        return self._weights[slots]

    def _follows(self, slot: int, step: int) -> bool:
        return slot in self._average and self._average[slot][0] == step - 1

    def _add(self, squares: torch.Tensor, step: int) -> None:
        finite = torch.where(squares.isfinite().all(), squares, torch.zeros_like(squares))
        self._sums = finite if self._sums is None else self._sums + finite
        self._steps.add(step)

    def _samples(
        self, gradients: Sequence[torch.Tensor | None], slots: Iterable[int]
    ) -> dict[int, torch.Tensor]:
        found = {}
        for slot in slots:
            gradient = gradients[slot]
            if gradient is not None and not gradient.is_sparse:
                flat, stride = gradient.detach().reshape(-1), self._strides[slot]
                if stride > _RUN:
                    flat = flat.unfold(0, _RUN, stride)
                found[slot] = flat.to(torch.float32, copy=True)
        return found
