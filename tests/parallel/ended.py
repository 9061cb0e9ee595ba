"""A `deft-profile` command that runs a job, and how it has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.parallel.launch import SCRIPTS
from tests.places import ROOT

LIMIT_S = 90
SCRIPT = str(SCRIPTS / "cli/profiled.py")


class Ended:
    """It has ended."""

    def __init__(
        self, folder: Path, *words: str, launcher: tuple[str, ...] = (), interrupt_at: str = ""
    ) -> None:
        command = [*launcher, sys.executable, "-m", "deft_horovod.cli.main", *words]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HOROVOD_", "DEFT_"))}
        environment = {
            **kept,
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": str(ROOT),
            "DEFT_PROBE_S": "0.05",
            "DEFT_DEADLINE_S": "20",
        }
        self.lines: list[str] = []
        with subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as job:
            # It takes its ranks with it; nobody has to look for them.
            timer = threading.Timer(LIMIT_S, job.terminate)
            timer.start()
            for line in job.stdout or ():
                self.lines.append(line)
                if interrupt_at and interrupt_at in line:
                    interrupt_at = ""
                    job.send_signal(signal.SIGINT)
            self.status = job.wait(LIMIT_S)
            timer.cancel()
        self.output = "".join(self.lines)
        self.left = sorted(path.name for path in folder.iterdir())

    def said(self, text: str) -> int:
        return sum(text in line for line in self.lines)
