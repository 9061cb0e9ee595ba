"""A script of DistributedDataParallel, unchanged: python -m deft_horovod --torchrun, and what
deft-profile asks of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deft_horovod.comparison import Comparison
from deft_horovod.plan import Plan
from tests.parallel.launch import run_ranks
from tests.places import ROOT

pytestmark = pytest.mark.timeout(200)

EXAMPLES = ROOT / "docs" / "examples" / "distributed"
EXAMPLE = EXAMPLES / "ddp.py"
QUICK = {"DEFT_PROFILE_STEPS": "2", "DEFT_TRIAL_STEPS": "2", "DEFT_TRIAL_ROUNDS": "1"}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)


def trained(example: str, *, attempts: int = 1, **env: str) -> str:
    """What two ranks print."""
    status, output = 1, ""
    while status and attempts:
        attempts -= 1
        job = run_ranks(
            EXAMPLES / example,
            2,
            env={"TEST_LAUNCHER": "torchrun", **env},
            interpreter=("-m", "deft_horovod", "--torchrun"),
        )
        status, output = job.returncode, job.output
    assert status == 0, output
    return output


def profiled(*words: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "deft_horovod.cli.main", *words)


@pytest.mark.parametrize("example", ["ddp.py", "accelerated.py", "trainer.py"])
def test_it_trains_as_it_does_with_ddp(example: str) -> None:
    ours = trained(example, DEFT_ACCURACY="exact", **QUICK)
    # A rank of torch's own DDP aborts now and then while it ends.
    torchs = trained(example, attempts=3, DEFT_DISABLE="1")
    outcome = re.compile(r"^(?:loss|trained).+$", re.MULTILINE)
    assert len(outcome.findall(ours)) == 1
    assert outcome.findall(ours) == outcome.findall(torchs)
    assert "of ddp)" in ours
    assert "deft_horovod:" not in torchs


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
