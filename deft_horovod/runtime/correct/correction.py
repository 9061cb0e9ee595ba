"""Correction: the next gradients are computed where the parameters would be by now, had everything
that is in flight been applied already.

A late update does harm because gradients are taken at parameters that lack it. So before forward
the user's own optimizer takes one more step for each generation in flight, with a guess of its
gradient, and when the step ends these are taken back (see `Lookahead`). At boundaries parameters
have their true values, equal on all ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn

from deft_horovod.peers import stock
from deft_horovod.runtime.correct.guesses import GUESSES, Arrived, Guess
from deft_horovod.runtime.correct.lookahead import Lookahead
from deft_horovod.runtime.measure.module_hook import ModuleHook, after_saving, before_loading
from deft_horovod.runtime.reduce.gates import Hook
from deft_horovod.runtime.reduce.loss_scale import LossScales
from deft_horovod.runtime.reduce.planned import PlannedReducer
from deft_horovod.runtime.reduce.updates import faster, options_of

if TYPE_CHECKING:
    from deft_horovod import _C as native

_PROBES: Final = 4  # gradients that are looked at, to learn what the user does to all

_Own = dict[int, torch.Tensor]  # this rank's gradients of one step, by parameter
_Run = tuple[int, int]  # the first and the last step of a generation


def possible(correction: str, roots: Sequence[nn.Module]) -> str:
    """The correction, or "none": without a module that is called there is no forward to act
    before."""
    return correction if roots else "none"


def correction_of(
    inner: torch.optim.Optimizer,
    reducer: PlannedReducer,
    roots: Sequence[nn.Module],
    scales: LossScales,
) -> Correction | None:
    """None: nothing is late, or it is not to be predicted."""
    guess = GUESSES.get(reducer.route.correction)
    if guess is None or not reducer.late:
        return None
    return Correction(inner, reducer, guess, roots, scales)


class Correction:
    """Of one optimizer under one plan. Acts at the first forward of a step."""

    def __init__(
        self,
        inner: torch.optim.Optimizer,
        reducer: PlannedReducer,
        guess: Guess,
        roots: Iterable[nn.Module],
        scales: LossScales,
    ) -> None:
        self._inner = inner
        self._reducer = reducer
        self._guess = guess
        self._scales = scales
        self._lookahead = Lookahead(inner)
        self._slots = _predictable(reducer)
        self._own: dict[int, _Own] = {}  # by step
        self._arrived: dict[int, Arrived] = {}
        self._flying: list[tuple[_Run, list[int]]] = []  # in the order of their updates
        self._due: list[native.Due] = []  # at this boundary
        self._waits = False  # for the next forward
        self._probe: tuple[list[torch.Tensor], torch.Tensor] | None = None
        # What becomes of an average before its update: clipping, loss scales. None: not seen yet.
        self._factor: torch.Tensor | None = None
        self._handles: list[Any] = []
        for root in roots:
            self._handles += [
                root.register_forward_pre_hook(Hook(self._before_forward)),
                after_saving(root, ModuleHook(self._lookahead.correct)),
                before_loading(root, Hook(self.lift)),
            ]

    # --- at a boundary -----------------------------------------------------------------------
    def note_own(self, step: int, gradients: Sequence[torch.Tensor | None]) -> None:
        """What this rank has contributed in the step that ends."""
        present = {slot: gradients[slot] for slot in self._slots}
        self._own[step] = {
            slot: _owned(gradient)
            for slot, gradient in present.items()
            if gradient is not None and not gradient.is_sparse
        }

    def note_due(self, dues: Sequence[native.Due]) -> None:
        """What is in ``p.grad`` now; what becomes of it until the update is done to all alike."""
        self._due = list(dues)
        tensors = (self._reducer.members[s].tensor for s in self._reducer.members_of(dues))
        gradients = [t.grad for t in tensors if t.grad is not None and t.grad.numel()]
        smallest = sorted(gradients, key=torch.Tensor.numel)[:_PROBES]
        self._probe = (smallest, _norm(smallest)) if smallest else None

    def updated(self, alive: Sequence[native.Due], step: int) -> None:
        """The updates of the boundary before `step` are done; these generations have begun and are
        not applied yet."""
        self._look_at_probe()
        if self._guess.looks_back:
            self._look_back()
        # These change in the middle of the next forward, when their gates open.
        held = self._reducer.members_of(due for due in self._reducer.boundary if due.gated)
        free = self._slots - held
        flying: dict[tuple[int, _Run], set[int]] = {}
        for due in alive:
            run = due.first_step, due.last_step  # so far
            slots = free & self._reducer.members_of([due])
            flying.setdefault((due.apply_step, run), set()).update(slots)
        self._flying = [(run, sorted(flying[at, run])) for at, run in sorted(flying)]
        oldest = min((due.first_step for due in alive), default=step)
        self._own = {at: own for at, own in self._own.items() if at >= oldest}
        self._waits = True

    def lift(self) -> None:
        """The true parameters again."""
        self._lookahead.lift()

    def abandon(self) -> None:
        """As :meth:`close`, but others may have trained since."""
        self._lookahead.leave_what_changed()
        self.close()

    def close(self) -> None:
        """Removes the hooks."""
        self.lift()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    # --- before a forward --------------------------------------------------------------------
    def _before_forward(self) -> None:
        if not self._waits or not torch.is_grad_enabled():
            return  # an evaluation sees the true parameters
        self._waits = False
        updates = [self._update(run, slots) for run, slots in self._flying]
        options, rate = options_of(self._inner), self._reducer.route.merging.rate
        self._lookahead.cast(
            [
                (update, faster(options, rate(last - first + 1)))
                for update, ((first, last), _) in zip(updates, self._flying, strict=True)
                if update
            ]
        )

    def _update(self, run: _Run, slots: Iterable[int]) -> dict[torch.Tensor, torch.Tensor]:
        ranks, guesses = self._reducer.route.reduction.process_set.size(), {}
        for slot in slots:
            own = self._own_of(run, slot)
            if own is not None:
                guess = self._guess.guess(own, self._arrived.get(slot), ranks)
                if guess is not None:
                    guesses[self._reducer.members[slot].tensor] = guess
        return guesses

    def _own_of(self, run: _Run, slot: int) -> torch.Tensor | None:
        """This rank's part in a generation, as if all ranks had the same."""
        steps = range(run[0], run[1] + 1)
        parts = [self._own[step][slot] for step in steps if slot in self._own.get(step, ())]
        if len(parts) < len(steps):
            return None
        if self._factor is None:
            return None
        route, share = self._reducer.route, 1.0
        if route.merging.mean:
            share /= len(steps)
        if route.reduction.op == stock.Sum:
            share *= route.reduction.process_set.size()
        total = sum(parts[1:], parts[0]) * (self._factor.to(parts[0].device) * share)
        # An overflow is dropped when it arrives.
        return torch.nan_to_num_(total, 0.0, 0.0, 0.0) if self._scales.used else total

    # --- what becomes of averages --------------------------------------------------------------
    def _look_at_probe(self) -> None:
        if self._probe is not None:
            gradients, before = self._probe
            factor = _norm(gradients) / before
            older = torch.zeros_like(factor) if self._factor is None else self._factor
            # As tensors, so that no thread waits for a GPU. Not finite: nothing there, or too much.
            self._factor = torch.where(factor.isfinite(), factor, older)
            self._probe = None

    def _look_back(self) -> None:
        for due in self._due:
            for slot in self._slots & self._reducer.members_of([due]):
                gradient = self._reducer.members[slot].tensor.grad
                own = self._own_of((due.first_step, due.last_step), slot)
                if gradient is not None and own is not None:
                    self._arrived[slot] = Arrived(gradient.detach().clone(), own)


def _predictable(reducer: PlannedReducer) -> set[int]:
    """Parameters that some generation updates late."""
    late = {one.bucket for one in reducer.plan.generations if one.delay or one.merged > 1}
    return {slot for bucket in late for slot in reducer.session.slots_of(bucket)}


def _norm(gradients: Sequence[torch.Tensor]) -> torch.Tensor:
    norms = [gradient.norm(dtype=torch.float32).to(gradients[0].device) for gradient in gradients]
    total: torch.Tensor = torch.stack(norms).norm()
    return total


def _owned(gradient: torch.Tensor) -> torch.Tensor:
    """A gradient that nothing else writes to. Autograd lets go of its own at the boundary; one that
    lies in the memory of messages is still written to."""
    own_bytes = gradient.numel() * gradient.element_size()
    return gradient.clone() if gradient.untyped_storage().nbytes() > own_bytes else gradient
