"""Rank programs that a script starts: itself once more on every rank, with its options."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.places import ROOT

# horovodrun takes a script's own options for its own, so they travel in the environment.
OPTIONS_VARIABLE = "SCRIPT_OPTIONS"
PATIENCE_S = 15  # for a job to end after it was asked to
LAST_WORDS_S = 5  # for its output to arrive after its end
TIMED_OUT = 124
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


def program(module: str) -> list[str]:
    """A script of this project as a program of ranks, which have its root in PYTHONPATH."""
    return [sys.executable, "-m", module]


def horovodrun(ranks: int, command: Sequence[str], host_list: str | None = None) -> list[str]:
    """A job on this machine, over loopback, or on the hosts given."""
    hosts = ["-H", host_list] if host_list else []
    return [str(Path(sys.executable).parent / "horovodrun"), "-np", str(ranks), *hosts, *command]


def exit_on_sigterm() -> None:
    """SIGTERM ends the script as an exception does, so it cleans up. The signal may come twice
    (`timeout` sends it to a whole group), and the second must not interrupt the cleaning."""

    def leave(number: int, _: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def end_with_parent() -> None:
    """For a new process: the kernel sends it SIGTERM when the thread that started it is gone."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def say(line: str) -> None:
    """Prints at once, also into a pipe."""
    print(line, end="", flush=True)


def stream(
    command: Sequence[str],
    environment: Mapping[str, str],
    on_line: Callable[[str], object] = say,
    limit_s: float | None = None,
    end: Callable[[], None] | None = None,
) -> int:
    """Runs a job, hands on each line of its ranks, and returns its exit status.

    A job that has not ended by the limit, or when this is interrupted, is ended; `end` does it
    where there is more to end than a process.
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
    # In a thread: a process that inherits the pipe and outlives the job would block a reader here.
    reader = threading.Thread(target=_relay, args=(job.stdout or (), on_line), daemon=True)
    reader.start()
    try:
        return job.wait(limit_s)
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    finally:
        if job.poll() is None:
            _end(job, end or job.terminate)
        reader.join(LAST_WORDS_S)


def _relay(lines: Iterable[str], on_line: Callable[[str], object]) -> None:
    for line in lines:
        on_line(line.split("<stdout>:", 1)[-1].split("<stderr>:", 1)[-1])


def _end(job: subprocess.Popen[str], ask: Callable[[], None]) -> None:
    """Asks it to end, then insists."""
    ask()
    try:
        job.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        job.kill()
        job.wait()
