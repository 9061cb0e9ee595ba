"""A rank is killed: the others get Horovod's own exception within seconds, and end well."""

from __future__ import annotations

import signal

import pytest

from tests.parallel.launch import run_ranks

pytestmark = pytest.mark.timeout(100)

CRASHES = ("terminate called", "Segmentation fault", "Fatal Python error", "core dumped")


@pytest.mark.parametrize(
    ("np", "policy", "where"),
    [
        (2, "bucket", "backward"),
        (2, "priority", "forward"),
        (2, "wfbp", "forward"),
        (2, "stock", "backward"),
        (4, "bucket", "backward"),
        (4, "priority", "backward"),
    ],
)
def test_survivors_get_an_internal_error_of_horovod(np: int, policy: str, where: str) -> None:
    options = {"policy": policy, "where": where}
    job = run_ranks("supervised.py", np, "fail_killed.py", timeout_s=80, options=options)
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
