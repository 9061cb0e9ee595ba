"""Who trains on the second link learns of a dead rank at once, and of a late one in time."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.parallel.launch import run_ranks

pytestmark = pytest.mark.timeout(100)

DEADLINE_S = 8.0  # of the rank program
# Of Horovod's own messages: a rank that is killed in the middle of sending one is noticed only
# then (docs/internals/decisions.md), on the way out, on which no message is ours.
GLOO_S = 4
CRASHES = ("terminate called", "Segmentation fault", "Fatal Python error", "core dumped")


def run(np: int, how: str, both: bool) -> list[dict[str, Any]]:
    job = run_ranks(
        "failures/supervised.py",
        np,
        "failures/fail_second_link.py",
        timeout_s=80,
        options={"how": how, "both": both},
        env={"HOROVOD_GLOO_TIMEOUT_SECONDS": str(GLOO_S)},
    )
    for rank in job.require_success().results:
        for crash in CRASHES:
            assert crash not in rank["output"]
    return job.results


@pytest.mark.parametrize(("np", "both"), [(2, False), (2, True), (4, False)])
def test_a_killed_rank_is_an_internal_error_of_horovod_on_the_others(np: int, both: bool) -> None:
    *survivors, killed = run(np, "killed", both)
    assert killed["status"] == -signal.SIGKILL
    for survivor in survivors:
        said = survivor["said"]
        assert said is not None, survivor["output"]
        assert said["type"] == "HorovodInternalError", said
        assert both or "the second link (Gloo on lo) failed" in said["message"]
        assert said["seen_s"] - said["killed_s"] < DEADLINE_S
        assert survivor["status"] == 0, survivor["output"]
        assert survivor["ended_s"] - said["seen_s"] < 10.0  # the way out is no hang either


@pytest.mark.alone
def test_a_late_rank_is_named_by_the_wait_and_still_finds_what_the_others_sent() -> None:
    on_time, late = run(2, "late", both=False)
    assert on_time["said"]["type"] == "WaitTimeoutError", on_time
    assert "another rank has not sent its part" in on_time["said"]["message"]
    assert DEADLINE_S <= on_time["said"]["seconds"] < DEADLINE_S + 1.5
    assert late["said"]["type"] is None, late["said"]
    assert on_time["status"] == late["status"] == 0
