import subprocess
import sys

import pytest

SOLVE = """
from deft_horovod.solver.cp_sat import cp_model
import sys
flags = sys.getdlopenflags()
model = cp_model.CpModel()
x = model.new_int_var(0, 9, "")
model.add(2 * x <= 11)
model.maximize(x)
solver = cp_model.CpSolver()
solver.parameters.num_workers = 1
assert solver.solve(model) == cp_model.OPTIMAL
assert solver.value(x) == 5
"""
HOROVOD = """
import sys
before = sys.getdlopenflags()
import torch
import horovod.torch
assert torch.ones(2).sum() == 2
"""


@pytest.mark.parametrize("parts", [(HOROVOD, SOLVE), (SOLVE, HOROVOD), (SOLVE,)])
def test_it_solves_whatever_was_loaded_first(parts):
    """In a process of its own: a wrong order of symbols crashes it."""
    checks = "assert sys.getdlopenflags() == flags"
    code = "\n".join([*parts, checks])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr or f"killed by signal {-done.returncode}"


def test_the_way_libraries_are_loaded_is_left_as_it_was():
    code = "import sys; a = sys.getdlopenflags(); import deft_horovod.solver.cp_sat; "
    code += "assert sys.getdlopenflags() == a"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)
