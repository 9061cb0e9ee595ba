"""deft-profile run --torchrun: a job without Horovod is profiled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from deft_horovod.profile import Profile
from tests.places import ROOT

pytestmark = pytest.mark.timeout(150)

EXAMPLE = ROOT / "docs" / "examples" / "distributed" / "train.py"


def test_its_profile_is_written(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    command = [sys.executable, "-m", "deft_horovod.cli.main", "run", "--torchrun", "-np", "2"]
    command += ["--steps", "5", "-o", str(path), "--", "python", str(EXAMPLE)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "this is the profile of AdamW (6 tensors" in done.stderr
    profile = Profile.load(path)
    assert (profile.size, len(profile.tensors)) == (2, 6)
    assert profile.steps >= 3
    assert profile.links[0].samples
