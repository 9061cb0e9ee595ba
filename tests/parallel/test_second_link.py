"""The second link under horovodrun, beside Horovod's, over the loopback."""

from __future__ import annotations

import functools

import pytest

from tests.parallel.cases import Job, case_names, run_program

PROGRAM = "second_link.py"
LIMIT_S = 150

pytestmark = pytest.mark.timeout(LIMIT_S + 20)


@functools.cache
def _job(np: int) -> Job:
    return run_program(PROGRAM, np, timeout_s=LIMIT_S)


@pytest.mark.parametrize("case", case_names(PROGRAM))
@pytest.mark.parametrize("np", [2, 4])
def test_case(np: int, case: str) -> None:
    _job(np).values(case)
