"""Whole courses on two ranks."""

from __future__ import annotations

import pytest

from tests.parallel.cases import Job, case_names, run_program

PROGRAM = "piloting.py"
LIMIT_S = 240

pytestmark = pytest.mark.timeout(LIMIT_S + 20)


@pytest.fixture(scope="module")
def job() -> Job:
    return run_program(PROGRAM, 2, timeout_s=LIMIT_S)


@pytest.mark.parametrize("case", case_names(PROGRAM))
def test_case(job: Job, case: str) -> None:
    job.values(case)
