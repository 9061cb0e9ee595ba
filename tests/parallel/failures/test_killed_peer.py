"""A rank is killed: the others get Horovod's own exception within seconds, and end well."""

from __future__ import annotations

import signal

import pytest

from tests.parallel.launch import run_ranks

pytestmark = pytest.mark.timeout(100)

# Policies that measure get to their plan within a few steps. A rank that is killed in the middle of
# sending a message is noticed only with Gloo's timeout.
QUICK = {
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "8",
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
    ("policy", "where"),
    [
        ("bucket", "backward"),
        ("priority", "forward"),
        ("stock", "backward"),
        *((policy, f"random{i}") for i, policy in enumerate(RANDOM)),
    ],
)
def test_the_survivor_gets_an_internal_error_of_horovod(policy: str, where: str) -> None:
    options = {"policy": policy, "where": where}
    env = {**QUICK, "DEFT_MAX_DELAY": "1"} if policy == "least_stale" else QUICK
    job = run_ranks(
        "failures/supervised.py",
        2,
        "failures/fail_killed.py",
        timeout_s=80,
        options=options,
        env=env,
    )
    survivor, killed = job.require_success().results
    assert killed["status"] == -signal.SIGKILL
    assert killed["said"] is None
    said = survivor["said"]
    assert said is not None, survivor["output"]
    assert said["type"] == "HorovodInternalError", said
    assert said["message"]
    assert said["seen_s"] - said["killed_s"] < 10.0
    assert survivor["status"] == 0, survivor["output"]
    assert survivor["ended_s"] - said["seen_s"] < 10.0  # the way out is no hang either
    for crash in CRASHES:
        assert crash not in survivor["output"]


@pytest.mark.parametrize(
    ("policy", "where"),
    [("deft", "random100"), ("priority", "backward"), ("bucket", "backward")],
)
def test_between_more_ranks_nobody_hangs(policy: str, where: str) -> None:
    """Horovod goes on negotiating after a message has failed, while other survivors may still wait
    for that message's bytes. Between more than two ranks Gloo then may meet a message of another
    length, and ends the process itself: an error that nobody can catch, but an end. Stock Horovod
    does so as well. One that waits for another survivor, which waits for nobody any more, ends with
    Gloo's own timeout: 30 s if it is not set."""
    options = {"policy": policy, "where": where}
    job = run_ranks(
        "failures/supervised.py",
        4,
        "failures/fail_killed.py",
        timeout_s=80,
        options=options,
        env=QUICK,
    )
    *survivors, killed = job.require_success().results
    assert killed["status"] == -signal.SIGKILL
    for survivor in survivors:
        assert survivor["ended_s"] - killed["ended_s"] < 20.0
        ended_by_gloo = "throwing an instance of 'gloo::" in survivor["output"]
        assert (survivor["status"] != 0) == ended_by_gloo, survivor["output"]
        said = survivor["said"]
        assert said is not None or ended_by_gloo, survivor["output"]
        assert said is None or said["type"] == "HorovodInternalError", said
        assert said is None or said["message"], said
