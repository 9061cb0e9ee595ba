"""The tutorial's commands, one after the other, as a reader would type them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

DOCS = ROOT / "docs"
LIMIT_S = 100
_BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)


@pytest.mark.timeout(400)
def test_every_command_of_the_tutorial_works(tmp_path: Path) -> None:
    scripts = Path(sys.executable).parent
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HOROVOD_", "DEFT_"))}
    environment = {
        **kept,
        "PATH": f"{scripts}:{os.environ['PATH']}",
        "DOCS": str(DOCS),
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
    }
    commands = "".join(_BLOCK.findall((DOCS / "guide" / "tutorial.md").read_text(encoding="utf-8")))
    said = {}
    for command in commands.splitlines():
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        said[command.removeprefix("deft-profile ").split()[0]] = done.stdout + done.stderr
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {
        "train.py",
        "profile.json",
        "plan.json",
        "comparison.json",
        "report.html",
        "traces",
        "trace.json",
    }
    assert "communication exposed" in said["compare"]
    assert "wrote report.html" in said["report"]
    assert "2 ranks, 19 steps" in said["trace"]
