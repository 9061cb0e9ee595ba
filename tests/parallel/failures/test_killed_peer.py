"""A rank is killed: the others get Horovod's own exception within seconds, and end well."""

from __future__ import annotations

import signal

import pytest

from tests.parallel.launch import run_ranks

pytestmark = pytest.mark.timeout(100)

# Policies that measure get to their plan within a few steps.
QUICK = {
    "DEFT_PROFILE_WARMUP_STEPS": "1",
    "DEFT_PROFILE_STEPS": "2",
    "DEFT_PROBE_S": "0.02",
    "DEFT_WARMUP_STEPS": "0",
    "DEFT_TRIAL_STEPS": "2",
    "DEFT_TRIAL_ROUNDS": "1",
}
# Late, late and gated, and the default, at moments of its own each; the fault campaign goes on with
# other policies and moments.
RANDOM = ("deft", "least_stale", "auto")

CRASHES = ("terminate called", "Segmentation fault", "Fatal Python error", "core dumped")


@pytest.mark.parametrize(
    ("np", "policy", "where"),
    [
        (2, "bucket", "backward"),
        (2, "priority", "forward"),
        (2, "stock", "backward"),
        (4, "bucket", "backward"),
        *((2, policy, f"random{i}") for i, policy in enumerate(RANDOM)),
    ],
)
def test_survivors_get_an_internal_error_of_horovod(np: int, policy: str, where: str) -> None:
    options = {"policy": policy, "where": where}
    env = {**QUICK, "DEFT_MAX_DELAY": "1"} if policy == "least_stale" else QUICK
    job = run_ranks(
        "failures/supervised.py",
        np,
        "failures/fail_killed.py",
        timeout_s=80,
        options=options,
        env=env,
    )
    *survivors, killed = job.require_success().results
    assert killed["status"] == -signal.SIGKILL
    assert killed["said"] is None
    for survivor in survivors:
        said = survivor["said"]
        assert said is not None, survivor["output"]
        assert said["type"] == "HorovodInternalError", said
        assert said["message"]
        assert said["seen_s"] - said["killed_s"] < 10.0
        assert survivor["status"] == 0, survivor["output"]
        assert survivor["ended_s"] - said["seen_s"] < 10.0  # the way out is no hang either
        for crash in CRASHES:
            assert crash not in survivor["output"]


@pytest.mark.parametrize(("policy", "where"), [("deft", "random100"), ("priority", "backward")])
def test_with_several_messages_on_their_way_nobody_hangs(policy: str, where: str) -> None:
    """Horovod goes on with the messages that it has agreed on after one of them has failed. Between
    more than two ranks Gloo then may meet a message of another length, and ends the process itself:
    an error that nobody can catch, but an end. One that waits for another survivor, which waits for
    nobody any more, ends with Gloo's own timeout: 30 s if it is not set."""
    options = {"policy": policy, "where": where}
    env = {**QUICK, "HOROVOD_GLOO_TIMEOUT_SECONDS": "10"}
    job = run_ranks(
        "failures/supervised.py",
        4,
        "failures/fail_killed.py",
        timeout_s=80,
        options=options,
        env=env,
    )
    *survivors, killed = job.require_success().results
    assert killed["status"] == -signal.SIGKILL
    for survivor in survivors:
        assert survivor["ended_s"] - killed["ended_s"] < 20.0
        said = survivor["said"]
        if said is None:
            assert survivor["status"] not in (0, None), survivor["output"]
            assert "gloo" in survivor["output"], survivor["output"]
        else:
            assert said["type"] == "HorovodInternalError", said
