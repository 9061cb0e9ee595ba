"""Budget: how long CP-SAT may search, so that the same input gives the same answer everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deft_horovod.solver.cp_sat import cp_model

NEAR: Final = 1e-6  # of a whole number: then CP-SAT's bound is that one


@dataclass(frozen=True)
class Budget:
    """In CP-SAT's own deterministic time, of which a core does very roughly one in a second."""

    effort: float = 20.0

    def share(self, part: float) -> Budget:
        return Budget(self.effort * part)

    def solver(self) -> cp_model.CpSolver:
        """One worker, which does not look at the clock."""
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        solver.parameters.max_deterministic_time = self.effort
        return solver


def spent(solver: cp_model.CpSolver) -> float:
    """Of the budget, by the last search."""
    return float(solver.response_proto.deterministic_time)
