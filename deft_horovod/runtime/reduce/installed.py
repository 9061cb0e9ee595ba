"""What is at work on the gradients of one optimizer: a plan, its gates, and hooks for the rest.

Each part may be missing: before the first plan, where everything goes the stock way, where nothing
is gated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deft_horovod.runtime.measure.step_clock import StepClock
from deft_horovod.runtime.reduce.gates import Gates
from deft_horovod.runtime.reduce.planned import PlannedReducer
from deft_horovod.runtime.reduce.stock import StockHooks
from deft_horovod.runtime.reduce.updates import Options

if TYPE_CHECKING:
    from deft_horovod import _C as native


@dataclass(frozen=True)
class Installed:
    """Treats the parts as one."""

    planned: PlannedReducer | None = None
    gates: Gates | None = None
    stock: StockHooks | None = None

    @property
    def late(self) -> PlannedReducer | None:
        """The plan, if updates may be on their way between steps, apart from those behind gates."""
        return self.planned if self.planned is not None and self.planned.late else None

    @property
    def failed(self) -> bool:
        """Whether Horovod has failed under a message of the plan."""
        return self.planned is not None and self.planned.session.failure() is not None

    def finish(self, clock: StepClock, *, hold_gated: bool) -> list[native.Due]:
        """Ends the step: what is due is in ``p.grad``, but for what waits for its gate."""
        hold_gated = hold_gated and self.gates is not None
        held = self.planned.finish(hold_gated) if self.planned is not None else []
        self.finish_stock(clock)
        return held

    def finish_stock(self, clock: StepClock) -> None:
        """The same for what goes the stock way alone."""
        if self.stock is not None:
            with clock.exposed():
                self.stock.reducer.finish()
            self.stock.reset()

    def reset_stock(self) -> None:
        """Also of a window of backward passes that is not over nothing is left."""
        if self.stock is not None:
            self.stock.reset()

    def set_passes_per_step(self, passes: int) -> None:
        """Counts so many backward passes per step from now on."""
        if self.stock is not None:
            self.stock.passes_per_step = passes

    def set_adding(self, *, adding: bool) -> None:
        """Backward passes only add to gradients, or count."""
        if self.stock is not None:
            self.stock.adding = adding

    def hold(self, dues: list[native.Due], options: Options) -> list[native.Due]:
        """These wait for their gates; returns those that have none."""
        if self.gates is None:
            return dues
        self.gates.hold(dues, options)
        return []

    def updated(self) -> None:
        """The updates of a boundary are done."""
        if self.planned is not None:
            self.planned.updated()
        self.watch()

    def watch(self) -> None:
        """From here to the next forward, uses of what is held open the gates."""
        if self.gates is not None:
            self.gates.watch()

    def open_gates(self) -> None:
        """Applies what is held back."""
        if self.gates is not None:
            self.gates.open_all()

    def forget_gradients(self, *, to_zero: bool) -> None:
        """The user clears the gradients of what is held back."""
        if self.gates is not None:
            self.gates.forget_gradients(to_zero=to_zero)

    def close_plan(self) -> int:
        """With its gates; returns how many generations it has dropped."""
        if self.gates is not None:
            self.gates.close()
        if self.planned is None:
            return 0
        self.planned.close()
        return self.planned.dropped

    def close_stock(self) -> None:
        """The stock way has no hooks any more."""
        if self.stock is not None:
            self.stock.detach()


@dataclass(frozen=True)
class Boundary:
    """Of the step that has just ended."""

    step: int  # of the job
    step_us: float
    planned: PlannedReducer | None  # the plan at work
    collected: native.Collected | None  # the gradients that came
    settled: bool  # whether the job is in its last phase
    late: bool  # whether updates may be late in this phase
    profiled: bool  # whether a profile says how long steps should take
