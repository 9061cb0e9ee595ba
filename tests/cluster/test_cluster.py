"""The small cluster for real: links of the rates asked for, exact values, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from deft_horovod.policies import registry
from tests.places import ROOT

CLUSTER = ("-m", "scripts.cluster.cluster")
VALUES = Path(__file__).with_name("values.py")
MEASURED_MBIT = 8 * 2  # megabits of the measured message; on two ranks a ring sends all of it once
REFUSED = 3
SHORT = {"profile_warmup_steps": 1, "profile_steps": 2, "warmup_steps": 0}
LATE = {**SHORT, "max_delay": 1, "max_merge": 4}
TWO = {**LATE, "second_interface": "eth1"}
QUICK = {**SHORT, "probe_s": 0.5}
AT_ONCE = ("stock", "bucket", "ddp", "priority", "wfbp")
RIVALS = ("bytescheduler", "dcredit", "dear", "mgwfbp", "p3", "usbyte")
LATE_RIVALS = ("covap", "sapipe")
ARMS = [
    *({"policy": policy, "config": {}} for policy in AT_ONCE),
    *({"policy": policy, "config": QUICK} for policy in (*RIVALS, *LATE_RIVALS, "fewest_bytes")),
    *(
        {"policy": policy, "config": config}
        for policy in ("deft", "least_stale")
        for config in (LATE, TWO)
    ),
]

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("no_cluster")]


def cluster(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *CLUSTER, *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def require(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr


def measured(folder: Path, *, second: bool, arms: list[dict]) -> list[dict[str, Any]]:
    output = folder / "values.json"
    output.unlink(missing_ok=True)
    options = {"output": str(output), "second": second, "arms": arms}
    require(
        cluster(
            *("run", "--urgent", "--", sys.executable, str(VALUES)),
            SCRIPT_OPTIONS=json.dumps(options),
            PYTHONPATH=str(ROOT),
            OMP_NUM_THREADS="1",
        )
    )
    return json.loads(output.read_text())


def left_behind() -> dict[str, Any]:
    names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    spaces = [line.split()[0] for line in names.stdout.splitlines() if line.startswith("deft-")]
    return {"namespaces": spaces, "files": Path("/run/deft-cluster").exists()}


def test_two_links_at_their_rates_and_exact_values(tmp_path: Path) -> None:
    require(cluster("up", "--hosts", "2", "--rate", "400", "--second-rate", "100"))
    for rank in measured(tmp_path, second=True, arms=ARMS):
        for arm, came_out in zip(ARMS, rank["trained"], strict=True):
            assert came_out["wrong"] == [], arm
            late = "max_delay" in arm["config"] or arm["policy"] in LATE_RIVALS
            assert came_out["late"] == late, arm
            two = "second_interface" in arm["config"]
            assert ("second" in came_out["links"]) == two, arm
        assert rank["calm"]
        assert rank["scheduler"] == os.SCHED_RR
        # Never faster than the line; headers and start-up cost something.
        assert MEASURED_MBIT / 400 < rank["first_s"] < 1.5 * MEASURED_MBIT / 400
        assert MEASURED_MBIT / 100 < rank["second_s"] < 1.5 * MEASURED_MBIT / 100
    require(cluster("rate", "80", "--second-rate", "50"))
    for rank in measured(tmp_path, second=True, arms=[]):
        assert MEASURED_MBIT / 80 < rank["first_s"] < 1.5 * MEASURED_MBIT / 80
        assert MEASURED_MBIT / 50 < rank["second_s"] < 1.5 * MEASURED_MBIT / 50
    require(cluster("down"))
    assert left_behind() == {"namespaces": [], "files": False}


def test_all_policies_are_among_those_with_exact_values() -> None:
    assert {arm["policy"] for arm in ARMS} == {*registry()} - {"auto"}


def start_sleeping_job() -> subprocess.Popen[bytes]:
    """A job whose ranks wait; returns when they run."""
    job = subprocess.Popen([sys.executable, *CLUSTER, "run", "--", "sleep", "77777"])
    for _ in range(200):
        if len(sleeping()) >= 2:
            return job
        time.sleep(0.1)
    job.kill()
    raise AssertionError("the job did not start")


def sleeping() -> list[int]:
    """The ranks of that job."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if words[:2] == [b"sleep", b"77777"]:
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize("then", ["up", "down"])
def test_what_a_killed_run_leaves_is_removed(then: str) -> None:
    require(cluster("up"))
    job = start_sleeping_job()
    refused = cluster("up")
    assert refused.returncode == REFUSED
    assert "another command is using the cluster" in refused.stderr
    job.send_signal(signal.SIGKILL)
    job.wait(10)
    require(cluster(then))
    assert sleeping() == []
    hosts = ["deft-h1", "deft-h2", "deft-switch"] if then == "up" else []
    assert sorted(left_behind()["namespaces"]) == hosts


def test_down_ends_a_run_that_is_under_way() -> None:
    require(cluster("up"))
    job = start_sleeping_job()
    require(cluster("down"))
    assert job.wait(20) != 0
    assert sleeping() == []
    assert left_behind() == {"namespaces": [], "files": False}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["run", "--urgent", "--spin", "--", "true"], "never lets go"),
        (["run", "--hosts", "3", "--", "true"], "2 hosts are up, 3 are asked for"),
        (["rate", "100", "--second-rate", "50"], "there is no second link"),
    ],
)
def test_refusals(words: list[str], reason: str) -> None:
    require(cluster("up"))
    refused = cluster(*words)
    assert refused.returncode == REFUSED
    assert reason in refused.stderr
