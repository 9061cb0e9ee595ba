"""The rank programs of this folder, their cases, and the tests made of them.

A program has functions ``case_...(hvd)`` that return an outcome: comparable data. Each runs with
Horovod's module and then with ours, in one job; the test is that both outcomes are equal.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.parallel.cases import Job, run_program

SCRIPTS: Final = Path(__file__).parent / "scripts"
POLICIES: Final = ("auto", "bucket", "least_stale", "stock")
# Cases that go through all classes of torch.optim take long. What matters to a class is whether its
# step() runs at once, or in parts behind gates; the other policies do one of the two as well.
_BY_CLASS: Final = ("least_stale", "stock")
_FEWER: Final = {
    f"broadcasts.{case}": _BY_CLASS
    for case in (
        "options_of_every_class",
        "state_of_every_class",
        "state_with_few_options",
        "training_of_every_class",
    )
}
_CASE: Final = re.compile(r'^def case_(\w+)\((hvd|module)\b[^)]*\).*:\n    """(.*)', re.MULTILINE)


def scenarios(program: str) -> dict[str, str]:
    """The cases of a rank program, each with the first argument of its function: ``hvd`` where it
    runs once with each policy, ``module`` where policies have nothing to do with it."""
    text = (SCRIPTS / f"{program}.py").read_text(encoding="utf-8")
    return {name: argument for name, argument, _ in _CASE.findall(text)}


def policies_of(name: str) -> tuple[str, ...]:
    """Those that the case ``program.case`` is compared with."""
    return _FEWER.get(name, POLICIES)


def programs() -> list[str]:
    """The names of all programs with cases."""
    return sorted(path.stem for path in SCRIPTS.glob("*.py") if scenarios(path.stem))


def _ids(program: str) -> list[str]:
    names = []
    for name, argument in scenarios(program).items():
        policies = policies_of(f"{program}.{name}")
        names += [f"{name}-{policy}" for policy in policies] if argument == "hvd" else [name]
    return names


def run_scenarios(program: str, np: int, limit_s: int, options: Any = None) -> Job:
    """All cases of a program, or those that `options` names, in one job."""
    env = {"HOROVOD_DYNAMIC_PROCESS_SETS": "1", "HOROVOD_GLOO_TIMEOUT_SECONDS": "120"}
    path = str(SCRIPTS / f"{program}.py")
    return run_program(path, np, timeout_s=limit_s, options=options, env=env)


def scenario_tests(program: str, np: int = 2, limit_s: int = 600) -> Callable[..., None]:
    """The test of every case: ``test_case = scenario_tests("program")``. All run in one job."""

    @functools.cache
    def job() -> Job:
        return run_scenarios(program, np, limit_s)

    def test_case(case: str) -> None:
        job().values(case)

    test = pytest.mark.parametrize("case", _ids(program))(test_case)
    return pytest.mark.timeout(limit_s + 20)(test)
