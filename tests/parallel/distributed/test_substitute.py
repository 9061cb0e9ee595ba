"""A script of DistributedDataParallel, unchanged: python -m deft_horovod --torchrun, and what
deft-profile asks of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deft_horovod.comparison import Comparison
from deft_horovod.plan import Plan
from tests.places import ROOT

pytestmark = pytest.mark.timeout(200)

EXAMPLE = ROOT / "docs" / "examples" / "distributed" / "ddp.py"
RUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, **env},
    )


def profiled(*words: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "deft_horovod.cli.main", *words)


def test_it_trains_as_it_does_with_ddp() -> None:
    quick = {"DEFT_PROFILE_STEPS": "2", "DEFT_TRIAL_STEPS": "2", "DEFT_TRIAL_ROUNDS": "1"}
    ours = run(*RUN, "deft_horovod", "--torchrun", str(EXAMPLE), **quick)
    torchs = run(*RUN, "deft_horovod", "--torchrun", str(EXAMPLE), DEFT_DISABLE="1")
    assert ours.returncode == torchs.returncode == 0, ours.stderr + torchs.stderr
    assert ours.stdout.startswith("loss 0.")
    assert ours.stdout == torchs.stdout
    assert "of ddp)" in ours.stderr
    assert "deft_horovod" not in torchs.stderr


def test_what_is_missing_is_said() -> None:
    done = run(sys.executable, "-m", "deft_horovod", "--torchrun")
    assert (done.returncode, done.stderr) == (2, "deft_horovod: a script is missing\n")
    done = run(sys.executable, "-m", "deft_horovod", "--torchrun", "absent.py")
    assert (done.returncode, done.stderr) == (2, "deft_horovod: there is no script absent.py\n")


def test_it_is_compared_with_ddp(tmp_path: Path) -> None:
    path, page = tmp_path / "comparison.json", tmp_path / "report.html"
    words = ["compare", "--torchrun", "-np", "2", "--steps", "2", "--rounds", "1", "--json"]
    done = profiled(*words, "-o", str(path), "--", "python", str(EXAMPLE))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["arms"][0]["name"] == "ddp"
    compared = Comparison.load(path)
    assert compared.baseline_name == "DDP's way"
    assert isinstance(compared.baseline.plan, Plan)
    assert profiled("report", str(path), "-o", str(page)).returncode == 0
    assert "DDP&#x27;s way" in (text := page.read_text("utf-8")) or "DDP's way" in text
    assert "Stock Horovod" not in text
    refused = profiled("compare", "--torchrun", "-np", "2", "--policy", "ddp", "--", "python", "x")
    assert refused.returncode == 2
    assert "ddp is what the others are compared with" in refused.stderr
