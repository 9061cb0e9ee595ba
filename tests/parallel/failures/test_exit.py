"""A rank that leaves in the middle of a step leaves properly, and takes nobody along."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parallel.failures.test_killed_peer import CRASHES
from tests.parallel.launch import run_ranks

pytestmark = pytest.mark.timeout(80)


def run(how: str, policy: str = "") -> list[dict[str, Any]]:
    options = {"how": how, "policy": policy}
    job = run_ranks(
        "failures/supervised.py", 2, "failures/fail_exit.py", timeout_s=60, options=options
    )
    ranks: list[dict[str, Any]] = job.require_success().results
    for rank in ranks:
        for crash in CRASHES:
            assert crash not in rank["output"], rank["output"]
    return ranks


@pytest.mark.parametrize("policy", ["priority", "stock"])
def test_an_exception_of_the_user_is_what_the_user_sees(policy: str) -> None:
    failed, other = run("exception", policy)
    assert failed["status"] == 1
    assert "LookupError: a mistake of the user" in failed["output"]
    assert failed["said"] == "sent"
    assert other["status"] == 0, other["output"]
    assert other["said"]["type"] == "HorovodInternalError", other["said"]


@pytest.mark.parametrize(
    ("how", "said", "policy"), [("end", "sent", "bucket"), ("held", "stepped", "priority")]
)
def test_a_program_may_end_with_messages_in_flight(how: str, said: str, policy: str) -> None:
    for rank in run(how, policy):
        assert rank["status"] == 0, rank["output"]
        assert rank["said"] == said


def test_optimizers_may_go_with_messages_in_flight_and_a_shutdown_loses_no_update() -> None:
    """One after the other in one job: with bucket, with priority, and at last the shutdown."""
    for rank in run("forgotten"):
        assert rank["status"] == 0, rank["output"]
        assert rank["said"] == {"bucket": True, "priority": True, "shutdown": True}


@pytest.mark.parametrize("policy", ["priority", "late"])
def test_a_rank_that_ends_first_takes_nothing_from_one_that_saves(policy: str) -> None:
    first, other = run("behind", policy)
    for rank in (first, other):
        assert rank["status"] == 0, rank["output"]
    assert first["said"] == {"saved": 14, "late": policy == "late"}
