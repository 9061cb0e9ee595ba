"""Runs an example of the documentation that starts its own ranks."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import psutil

from tests.places import ROOT

EXAMPLES = ROOT / "docs" / "examples"
_MARK = "LAUNCHERS_TEST_JOB"


def _kill(mark: str) -> None:
    """What Ray and Spark have left behind, in whatever session."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it ended meanwhile, or is somebody else's
            if process.environ().get(_MARK) == mark:
                process.kill()


def printed(*words: str | Path, limit_s: float) -> str:
    """What `python WORDS` says, once it has ended well."""
    mark = uuid.uuid4().hex
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HOROVOD_", "DEFT_", "RAY_"))}
    environment = {
        **kept,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "RAY_ADDRESS": "local",
        "RAY_AUTH_MODE": "disabled",  # else a token is left in the home folder
        "RAY_USAGE_STATS_ENABLED": "0",
        "SPARK_LOCAL_IP": "127.0.0.1",
        _MARK: mark,
    }
    # A short name: sockets lie in it.
    with (
        tempfile.TemporaryDirectory(prefix="l-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile("w+", errors="replace") as output,
    ):
        job = subprocess.Popen(
            [sys.executable, *map(str, words)],
            cwd=folder,
            env={**environment, "RAY_TMPDIR": folder},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            status = job.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = -1
        finally:
            _kill(mark)
            job.wait()
        output.seek(0)
        said = output.read()
    assert status == 0, f"ended with {status} ({limit_s} s at most):\n{said[-6000:]}"
    return said
