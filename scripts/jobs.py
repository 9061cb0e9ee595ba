"""Rank programs that a script starts: itself once more on every rank, with its options."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# horovodrun takes a script's own options for its own, so they travel in the environment.
OPTIONS_VARIABLE = "SCRIPT_OPTIONS"
PATIENCE_S = 15  # for a job to end after it was asked to
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1  # of Linux's prctl()


def given_options() -> Any:
    """On a rank: what the script that started the job has to say. None: this is that script."""
    text = os.environ.get(OPTIONS_VARIABLE)
    return None if text is None else json.loads(text)


def environment(options: Any, base: Mapping[str, str] = os.environ, **more: str) -> dict[str, str]:
    """The environment of a job whose ranks get these options."""
    path = os.pathsep.join(filter(None, [str(ROOT), base.get("PYTHONPATH", "")]))
    return {
        **base,
        OPTIONS_VARIABLE: json.dumps(options, default=str),
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": path,
        **more,
    }


def horovodrun(ranks: int, command: Sequence[str]) -> list[str]:
    """A job on this machine, over loopback."""
    return [str(Path(sys.executable).parent / "horovodrun"), "-np", str(ranks), *command]


def end_with_parent() -> None:
    """For a new process: its end is asked for when the thread that starts it is gone."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def say(line: str) -> None:
    """Prints at once, also into a pipe."""
    print(line, end="", flush=True)


def stream(
    command: Sequence[str],
    environment: Mapping[str, str],
    on_line: Callable[[str], None] = say,
    limit_s: float | None = None,
) -> int:
    """Runs a job, hands on each line of its ranks, and returns its exit status.

    A job that has not ended by the limit, or when this is interrupted, is ended.
    """
    job = subprocess.Popen(
        command,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=end_with_parent,  # noqa: PLW1509  (one call into the kernel, no locks)
    )
    timer = threading.Timer(limit_s or 0, _end, [job])
    if limit_s is not None:
        timer.start()
    try:
        for line in job.stdout or ():
            on_line(line.split("<stdout>:", 1)[-1].split("<stderr>:", 1)[-1])
        return job.wait()
    finally:
        timer.cancel()
        if job.poll() is None:
            _end(job)
            job.communicate()  # its last words, or it would trip over a closed pipe


def _end(job: subprocess.Popen[str]) -> None:
    job.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        job.wait(PATIENCE_S)
    job.kill()
