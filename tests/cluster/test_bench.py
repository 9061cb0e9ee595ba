"""The side-by-side benchmark from end to end, on its smallest scale."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCH = ("-m", "scripts.benchmarks.cluster")
COMPUTE_MS = 60.0
POINT = ["--hosts", "2", "--profiles", "resnet101", "--ccr", "1", "--runs", "1", "--rounds", "1"]
SMALL = [*POINT, "--arms", "alone", "stock", "ddp", "bucket", "--compute-ms", str(COMPUTE_MS)]

pytestmark = [pytest.mark.timeout(150), pytest.mark.usefixtures("no_cluster")]


def bench(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, *BENCH, *SMALL, *words, "--name", "small"]
    command += ["--folder", str(folder / "runs"), "--report", str(folder)]
    return subprocess.Popen(
        command,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(job: subprocess.Popen[str], status: int = 0) -> str:
    output, _ = job.communicate(timeout=120)
    assert job.returncode == status, output
    return output


def cluster_is_up() -> bool:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return "deft-" in listed.stdout


def test_measures_reports_and_goes_on(tmp_path: Path) -> None:
    assert "wrote" in finished(bench(tmp_path))
    assert not cluster_is_up()
    (cell,) = json.loads((tmp_path / "small.json").read_text())["cells"]
    arms = cell["arms"]
    assert set(arms) == {"alone", "stock", "ddp", "bucket"}
    # Sleeping layers take the time they are given, however busy the machine.
    assert COMPUTE_MS - 1 <= arms["alone"]["step_ms"]["median"] < 1.5 * COMPUTE_MS
    # The all-reduce alone takes as long as the computing, and backward hides two thirds at most.
    assert 0.9 < cell["communication_ms"] / COMPUTE_MS < 1.6
    for name in ("stock", "ddp", "bucket"):
        assert arms[name]["of_compute"]["median"] > 1.15
    assert "| 2 | resnet101 | 1 |" in (tmp_path / "small.md").read_text()
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    finished(bench(tmp_path))
    assert files == {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}


def test_other_options_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    earlier = {"options": {"compute_ms": 55.0}}
    (tmp_path / "runs" / "resnet101-n2-ccr1-run1.json").write_text(json.dumps(earlier))
    assert "was measured with" in finished(bench(tmp_path, "--no-grid"), status=3)


def test_interrupt_leaves_no_cluster(tmp_path: Path) -> None:
    job = bench(tmp_path, "--no-grid")
    for _ in range(300):
        if cluster_is_up():
            break
        time.sleep(0.1)
    time.sleep(3)  # in the middle of a run
    job.send_signal(signal.SIGINT)
    assert "goes on from here" in finished(job, status=130)
    assert not cluster_is_up()
    assert not list((tmp_path / "runs").glob("*.json"))


def test_runs_on_given_hosts_without_a_cluster(tmp_path: Path) -> None:
    words = ["-H", "localhost:2", "--interface", "lo", "--no-grid"]
    assert "wrote" in finished(bench(tmp_path, *words))
    (cell,) = json.loads((tmp_path / "small.json").read_text())["cells"]
    assert set(cell["arms"]) == {"alone", "stock", "ddp", "bucket"}
    assert not cluster_is_up()
