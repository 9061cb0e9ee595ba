"""Budget: how long CP-SAT may search, so that the same input gives the same answer everywhere."""

from __future__ import annotations

from dataclasses import dataclass

from deft_horovod.solver.cp_sat import cp_model


@dataclass(frozen=True)
class Budget:
    """In CP-SAT's own deterministic time, of which a core does very roughly one in a second."""

    effort: float = 20.0

    def share(self, part: float) -> Budget:
        return Budget(self.effort * part)

    def solver(self) -> cp_model.CpSolver:
        """One worker that takes all its strategies in turns, in an order that does not depend on
        the clock."""
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.interleave_search = True
        solver.parameters.random_seed = 1
        solver.parameters.max_deterministic_time = self.effort
        return solver
