"""Who waits in vain learns after the deadline for what, and who is missing."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.parallel.launch import run_ranks

pytestmark = [pytest.mark.alone, pytest.mark.timeout(120)]

DEADLINE_S = 3.0
POLICIES = ("bucket", "wfbp", "priority", "stock")


@functools.cache
def results(np: int) -> list[dict[str, Any]]:
    env = {"DEFT_DEADLINE_S": f"{DEADLINE_S:g}"}
    job = run_ranks(
        "failures/fail_deadline.py", np, timeout_s=100, env=env, options={"policies": POLICIES}
    )
    return job.require_success().results


@pytest.mark.parametrize("policy", POLICIES)
def test_a_rank_that_is_late_for_a_step(policy: str) -> None:
    on_time, late = (found[policy] for found in results(2))
    assert on_time["type"] == "WaitTimeoutError", on_time
    assert "TimeoutError" in on_time["kinds"]
    assert DEADLINE_S <= on_time["seconds"] < DEADLINE_S + 1.5
    message = on_time["message"]
    assert "within 3 s" in message
    assert "rank 0" in message
    assert "another rank has not sent its part" in message
    assert "tensor '" in message
    assert "DEFT_DEADLINE_S" in message
    assert late["type"] is None, late  # the others' parts were there long ago


@pytest.mark.parametrize("policy", ["bucket", "wfbp", "priority"])
def test_a_plan_knows_the_step_and_the_bucket(policy: str) -> None:
    message = results(2)[0][policy]["message"]
    # The first step is reduced by the plan as well, so plans count like the training loop.
    assert "step 3" in message
    assert "bucket " in message
    assert "in Horovod's queue since" in message


def test_a_rank_that_never_takes_its_first_step() -> None:
    found = results(2)[0]["never agrees"]
    assert found["type"] == "WaitTimeoutError", found
    assert DEADLINE_S <= found["seconds"] < DEADLINE_S + 1.5
    for words in ("could not agree", "rank 0", "first optimizer step", "within 3 s"):
        assert words in found["message"]
