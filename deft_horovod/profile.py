"""What was measured: when gradients become ready, when parameters are used, what a link costs.

Indices are positions of the optimizer's parameters; times are microseconds.
"""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator
from typing_extensions import Self

from deft_horovod.errors import PlanError, explain
from deft_horovod.record import Index, Microseconds, Part, Record


class LinkCost(Part):
    """The time of one message: ``alpha + beta * bytes``."""

    alpha_us: Microseconds
    beta_us_per_byte: Microseconds

    def time_us(self, size_bytes: int) -> float:
        return self.alpha_us + self.beta_us_per_byte * size_bytes


class Profile(Record):
    """One training step as seen on this cluster."""

    version: Literal[1] = 1
    # A permutation of the parameters; those that never became ready come last.
    ready_order: tuple[Index, ...]
    # Since the backward stage began; for those that never became ready, its end.
    ready_us: tuple[Microseconds, ...]
    # Since the forward stage began; None: no module was seen that owns it, so nothing can gate it.
    first_use_us: tuple[Microseconds | None, ...]
    forward_us: Microseconds
    backward_us: Microseconds
    link: LinkCost | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        count = len(self.ready_order)
        if sorted(self.ready_order) != list(range(count)):
            raise PlanError(
                explain(
                    "profile rule 'ready_order': it is not a permutation of the parameters",
                    observed=list(self.ready_order)[:20],
                    expected=f"each of 0 .. {count - 1} once",
                )
            )
        for field, values in (("ready_us", self.ready_us), ("first_use_us", self.first_use_us)):
            if len(values) != count:
                raise PlanError(
                    explain(
                        f"profile rule '{field}': it needs one entry per parameter",
                        observed=f"{len(values)} entries",
                        expected=f"{count}, as in ready_order",
                    )
                )
        return self

    @classmethod
    def assumed(cls, parameters: int) -> Self:
        """What is taken for granted before anything was measured.

        Parameters are used in the order in which they are registered, their gradients become ready
        in the reverse order, evenly spaced, and backward takes twice as long as forward.
        """
        return cls(
            ready_order=tuple(reversed(range(parameters))),
            ready_us=tuple(2.0 * (parameters - i) for i in range(parameters)),
            first_use_us=tuple(float(i) for i in range(parameters)),
            forward_us=float(parameters),
            backward_us=2.0 * parameters,
        )
