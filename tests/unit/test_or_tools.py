"""OR-Tools works in a process that has loaded Horovod, whichever came first."""

import subprocess
import sys

import pytest

SOLVE = """
from deft_horovod.solver.or_tools import cp_model
model = cp_model.CpModel()
x = model.new_int_var(0, 9, "x")
model.add(3 * x >= 10)
model.minimize(x)
solver = cp_model.CpSolver()
solver.parameters.num_workers = 1
assert solver.solve(model) == cp_model.OPTIMAL
print("x =", solver.value(x))
"""


@pytest.mark.parametrize(
    "order", [["import horovod.torch", SOLVE], [SOLVE, "import horovod.torch"], [SOLVE]]
)
def test_it_solves_beside_horovod(order):
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(order)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "x = 4" in done.stdout
