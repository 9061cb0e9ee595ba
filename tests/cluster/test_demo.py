"""The demo for real, with a tiny model: every line of its ranks, and what it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.demo.outcome import COMPARISON_FILE, EXACT, OUTCOME_FILE, STOCK, TITLES, Outcome

TINY = ("--width", "32", "--layers", "1", "--length", "16", "--rounds", "2", "--steps", "3")

pytestmark = pytest.mark.timeout(300)


def demo(folder: Path, *more: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.demo", *TINY, "--folder", str(folder), *more],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("no_cluster")
def test_over_a_slow_link(tmp_path: Path) -> None:
    said = demo(tmp_path)
    assert "500 Mbit/s (network namespaces)" in said
    assert "round 2 of 2" in said
    assert "Verdict: ours is" in said
    assert "Forecast" not in said
    found = Outcome.from_json((tmp_path / OUTCOME_FILE).read_text(encoding="utf-8"))
    assert set(found.arms) == set(TITLES)
    assert all(len(arm.rounds_ms) == 2 for arm in found.arms.values())
    assert all(arm.replicas_equal for arm in found.arms.values())
    assert found.same_losses(EXACT)
    assert found.arms[STOCK].losses[-1] < found.arms[STOCK].losses[0]
    assert json.loads((tmp_path / COMPARISON_FILE).read_text(encoding="utf-8"))["arms"]
    assert (tmp_path / "demo.png").stat().st_size > 10_000
    assert "</html>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_without_one_the_simulator_says_what_it_would_do(tmp_path: Path) -> None:
    said = demo(tmp_path, "--loopback", "--rate", "100")
    assert "link: loopback" in said
    assert "Forecast for a link of 100 Mbit/s, by the simulator: stock Horovod" in said
