"""The parity jobs, each run once for all test files that look at it."""

from __future__ import annotations

import functools
from typing import Any, Final

from tests.parallel.cases import Job, run_program

RANKS: Final = (2, 3, 4)
LIMIT_S: Final = 400


@functools.cache
def parity_job(np: int) -> Job:
    """Twins trained with ours and with Horovod's optimizer, on so many ranks."""
    return run_program("parity.py", np, timeout_s=LIMIT_S - 20)


def values(np: int, case: str) -> list[dict[str, Any]]:
    """What each rank saw in this case."""
    return parity_job(np).values(case)
