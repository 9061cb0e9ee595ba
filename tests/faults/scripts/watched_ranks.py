"""Runs a rank program as a child and reports how it ended and what it has left behind.

horovodrun terminates all ranks as soon as one fails. Here none fails, in its eyes, so what the
others do by themselves can be seen. What the child leaves becomes a child of this process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from tests.parallel.scripts.reporting import options, report

_PR_SET_CHILD_SUBREAPER = 36  # of Linux's prctl()
_TAIL_CHARACTERS = 6000


def _fault_s(limit_s: float) -> float | None:
    """When the fault happened; None: it never did."""
    path = Path(os.environ["PARALLEL_RESULTS"]) / "fault"
    until_s = time.monotonic() + limit_s
    while not path.is_file() and time.monotonic() < until_s:
        time.sleep(0.05)
    return float(path.read_text()) if path.is_file() else None


def _error_s() -> float | None:
    """When this rank met its error; None: it met none, or could not say so any more."""
    rank = os.environ["HOROVOD_RANK"]
    path = Path(os.environ["PARALLEL_RESULTS"]) / f"error.{rank}"
    return float(path.read_text()) if path.is_file() else None


def _left() -> list[str]:
    left = []
    for process in psutil.Process().children(recursive=True):
        if process.status() != psutil.STATUS_ZOMBIE:
            left.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
        process.kill()
    return left


def main() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    given = options()
    program = str(Path(__file__).parent / given["program"])
    found: dict[str, Any] = {"hung": False}
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        child = subprocess.Popen([sys.executable, program], stdout=output, stderr=output)
        fault_s = _fault_s(given["begin_s"])
        try:
            child.wait(given["limit_s"])
        except subprocess.TimeoutExpired:
            found["hung"] = True
            child.send_signal(signal.SIGABRT)  # faulthandler shows where it is
            time.sleep(1.0)
            child.kill()
            child.wait()
        ended_s = time.time()
        time.sleep(0.3)
        output.seek(0)
        text = output.read()[-_TAIL_CHARACTERS:]
    found |= {"status": child.returncode, "left": _left(), "output": text}
    found["fault_seen"] = fault_s is not None
    found["after_s"] = ended_s - fault_s if fault_s is not None else None
    error_s = _error_s()
    both = fault_s is not None and error_s is not None
    found["error_after_s"] = error_s - fault_s if both else None
    print(text)
    report(found)


if __name__ == "__main__":
    main()
