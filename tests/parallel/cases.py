"""Rank programs that check many cases in one job, as starting a job takes seconds.

A program has functions ``case_...``; it runs all of them in order and reports each. The test file
asks for the names, so that every case is a test of its own, and for the outcome of each.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.parallel.launch import SCRIPTS, JobHungError, Result, run_ranks
from tests.parallel.scripts.reporting import POLICIES

# A rank that waits in vain ends with an error long before its job is killed.
_LIMITS = {
    "DEFT_DEADLINE_S": "20",
    "HOROVOD_STALL_CHECK_TIME_SECONDS": "15",
    "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "30",
    "HOROVOD_CYCLE_TIME": "1",
    # Policies that measure get to their plan within the few steps of a case.
    "DEFT_PROFILE_WARMUP_STEPS": "1",
    "DEFT_PROFILE_STEPS": "1",
    "DEFT_PROBE_S": "0.02",
    "DEFT_WARMUP_STEPS": "0",
    "DEFT_TRIAL_STEPS": "1",
    "DEFT_TRIAL_ROUNDS": "1",
}


def case_names(program: str) -> list[str]:
    """The cases of a rank program, in its order."""
    text = (SCRIPTS / program).read_text(encoding="utf-8")
    names = []
    for name, arguments in re.findall(r"^def case_(\w+)\(([^)]*)\)", text, re.MULTILINE):
        names += [f"{name}-{policy}" for policy in POLICIES] if "policy" in arguments else [name]
    return names


@dataclass(frozen=True)
class Job:
    """The outcome of a rank program with cases."""

    result: Result
    trouble: str  # how the job as a whole went wrong, if it did

    def values(self, case: str) -> list[Any]:
        """What the case returned on each rank.

        Raises:
            AssertionError: it failed, or did not end, on some rank; shows all of them.
        """
        failures = []
        values = []
        for rank, cases in enumerate(self.result.results):
            outcome = (cases or {}).get(case, {"error": "was not reached", "value": None})
            values.append(outcome["value"])
            if "skipped" in outcome:
                pytest.skip(outcome["skipped"])
            if outcome["error"]:
                failures.append(f"rank {rank}: {outcome['error']}")
        if failures:
            said = "\n".join(failures)
            output = self.result.output[-2000:]
            raise AssertionError(f"case {case}:\n{said}\n{self.trouble}\noutput:\n{output}")
        return values


def run_program(
    program: str,
    np: int,
    *,
    timeout_s: float = 100,
    options: Any = None,
    env: Mapping[str, str] | None = None,
) -> Job:
    """Runs it; what went wrong is told by the cases, even if the job had to be killed."""
    try:
        result = run_ranks(
            program, np, timeout_s=timeout_s, options=options, env={**_LIMITS, **(env or {})}
        )
    except JobHungError as error:
        return Job(error.result, f"the job was killed after {timeout_s} s")
    trouble = "" if result.returncode == 0 else f"the job ended with status {result.returncode}"
    return Job(result, trouble)


def case_tests(
    program: str,
    nps: Sequence[int] = (2,),
    limit_s: int = 240,
    env: Mapping[str, str] | None = None,
) -> Callable[..., None]:
    """The test of every case of a program: ``test_case = case_tests("program.py")``. Each number of
    ranks is one job; with several, it is a parameter too."""

    @functools.cache
    def job(np: int) -> Job:
        return run_program(program, np, timeout_s=limit_s, env=env)

    def test_case(np: int, case: str) -> None:
        job(np).values(case)

    def test_only_case(case: str) -> None:
        job(nps[0]).values(case)

    test = test_only_case
    if len(nps) > 1:
        test = pytest.mark.parametrize("np", nps)(test_case)
    test = pytest.mark.parametrize("case", case_names(program))(test)
    return pytest.mark.timeout(limit_s + 20)(test)
