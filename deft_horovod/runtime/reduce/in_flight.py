"""What is in flight between two steps, as a part of a checkpoint.

Where updates come late, parameters and optimizer state alone do not say where training stands. A
rank saves the memory of every generation that has begun and was not applied: averages that have
arrived, and its own gradients that have not left. With the plan and the place in its cycle that is
all it takes to go on exactly as if training had never stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from deft_horovod.errors import DeftError, explain
from deft_horovod.plan import Plan
from deft_horovod.plan.rules import unit_elements
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.reduce.loss_scale import LossScales
from deft_horovod.runtime.reduce.planned import PlannedReducer
from deft_horovod.runtime.reduce.rests import Rests

_LOG: Final = logging.getLogger("deft_horovod")
KEY: Final = "deft_in_flight"  # beside 'state' and 'param_groups'; plain torch ignores it
_VERSION: Final = 1


@dataclass(frozen=True)
class InFlight:
    """Generations on their way at a boundary, what rounding has left, and where in its cycle the
    plan stands."""

    plan: Plan
    step: int  # of the session, the next one to run
    size: int  # of the process set
    memory: tuple[tuple[int, int, torch.Tensor], ...]  # (bucket, buffer, elements)
    void: tuple[tuple[int, int], ...]  # (generation, first step) that are to be thrown away
    scales: tuple[tuple[int, float], ...]  # (step, loss scale)
    rests: Mapping[str, Any] = field(default_factory=dict)
    rank: int = 0  # of the process set, that saved it

    @classmethod
    def of(
        cls, reducer: PlannedReducer, size: int, scales: LossScales, *, in_step: bool
    ) -> InFlight:
        """A copy. Waits for what may leave by now; needs no other rank to do the same.

        `in_step`: gradients of a step that has not ended are there. A checkpoint is as if they
        were thrown away now: what they were added to is void.
        """
        reducer.settle()
        session = reducer.session
        mixed = reducer.runs_that_hold(session.step) if in_step else set()
        return cls(
            plan=reducer.plan,
            step=session.step,
            size=size,
            memory=tuple(
                (due.bucket, due.buffer, session.bucket_memory(due.bucket, due.buffer).clone())
                for due in session.alive()
            ),
            void=tuple(sorted(reducer.void_runs | mixed)),
            scales=scales.to_state(),
            rests=reducer.rests.to_state(in_step=in_step),
            rank=reducer.route.reduction.process_set.rank(),
        )

    def restore(self, reducer: PlannedReducer, scales: LossScales) -> None:
        """Into a fresh reducer of the same plan."""
        for bucket, buffer, elements in self.memory:
            memory = reducer.session.bucket_memory(bucket, buffer)
            memory.copy_(elements)
            if memory.is_cuda:  # what is sent or read from here on asks no event for it
                torch.cuda.current_stream(memory.device).synchronize()
        reducer.void_runs.update(self.void)
        scales.restore(self.scales)
        reducer.session.resume_at(self.step)

    def rests_on(self, rank: int) -> Mapping[str, Mapping[str, torch.Tensor]]:
        """Those that a rank begins with. What is left of sums belongs to the rank that made them:
        if all took them from the file of one, they would count as often as there are ranks."""
        return self.rests if rank == self.rank else {**self.rests, "sums": {}}

    def drop(self, rests: Rests) -> int:
        """Nothing of it is used; `rests` counts its part. Returns the number of generations."""
        rests.restore(self.rests)
        rests.clear()
        return len(self.memory)

    def to_state(self) -> dict[str, Any]:
        """As a checkpoint holds it: plain values and tensors."""
        return {
            "version": _VERSION,
            "plan": self.plan.to_json(),
            "step": self.step,
            "size": self.size,
            "memory": [list(entry) for entry in self.memory],
            "void": [list(entry) for entry in self.void],
            "scales": [list(entry) for entry in self.scales],
            "rests": dict(self.rests),
            "rank": self.rank,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> InFlight:
        """Reads what :meth:`to_state` wrote.

        Raises:
            DeftError: it comes from another version, or is damaged.
        """
        try:
            if state["version"] != _VERSION:
                raise ValueError(f"version {state['version']}")
            return cls(
                plan=Plan.from_json(state["plan"]),
                step=int(state["step"]),
                size=int(state["size"]),
                memory=tuple((int(b), int(k), elements) for b, k, elements in state["memory"]),
                void=tuple((int(g), int(s)) for g, s in state["void"]),
                scales=tuple((int(step), float(scale)) for step, scale in state["scales"]),
                rests=state.get("rests", {}),
                rank=int(state.get("rank", 0)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DeftError(
                explain(
                    "the gradients in flight that a checkpoint holds cannot be read",
                    observed=f"{type(error).__name__}: {error}",
                    expected=f"what state_dict() of this package writes (version {_VERSION})",
                    action=f"load a copy of the state without '{KEY}': at most the gradients of "
                    "the last steps are lost",
                )
            ) from error

    def members(
        self, everyone: Sequence[NamedParameter], size: int
    ) -> tuple[NamedParameter, ...] | None:
        """The parameters it belongs to, in the plan's order; None: it does not fit this job."""
        by_name = {member.name: member for member in everyone}
        found = tuple(by_name.get(slot.name) for slot in self.plan.slots)
        present = tuple(member for member in found if member is not None)
        if size != self.size or len(present) != len(found):
            return None
        fits = all(
            self._elements(number) == member.tensor.numel() for number, member in enumerate(present)
        )
        return present if fits else None

    def _elements(self, slot: int) -> int:
        spec = self.plan.slots[slot]
        return spec.end - spec.begin - unit_elements(self.plan.arenas[spec.arena].wire)


def agreed_members(
    restored: InFlight | None, agreement: Agreement, everyone: Sequence[NamedParameter], size: int
) -> tuple[NamedParameter, ...] | None:
    """The parameters to go on with; None: nothing was loaded, or it is to be dropped, on all ranks
    alike."""
    some, lacking = agreement.union([restored is not None, restored is None])
    if not some:
        return None
    members = None
    if restored is not None and not lacking:
        members = restored.members(everyone, size)
    if restored is None or members is None:
        _LOG.warning(
            "gradients in flight of a checkpoint, and what rounding has left of others, are "
            "dropped: not every rank has loaded them, or they belong to another number of ranks or "
            "another model"
        )
        return None
    # With late updates a rank may be ahead of another one, and have committed once more than it
    # when that one fails (elastic training).
    void = f", without {sorted(restored.void)}" if restored.void else ""
    whole = restored.rests.get("whole_next")
    void += f", next in full precision: {', '.join(whole)}" if whole else ""
    saved = agreement.collect(f"step {restored.step} of plan {restored.plan.hash()[:12]}{void}")
    if len({*saved}) > 1:
        _LOG.warning(
            "gradients in flight of a checkpoint, and what rounding has left of others, are "
            "dropped: ranks have saved them at different steps (%s)",
            ", ".join(f"rank {rank}: {text}" for rank, text in enumerate(saved)),
        )
        return None
    return members
