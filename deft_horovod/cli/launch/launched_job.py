"""A job that is profiled: started, watched, and interrupted if its user wants that."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import IO, Final, Protocol, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from deft_horovod.job.exit_report import progress

INTERRUPTED: Final = 130
_POLL_S: Final = 0.1
_LAST_WORDS_S: Final = 20.0  # after an interrupt


class Screen(Protocol):
    """Where the job's progress is seen."""

    def show(self, done: int, needed: int) -> None:
        """So many steps are done."""


class Silent:
    """No progress is shown."""

    def show(self, done: int, needed: int) -> None:
        """Nothing to see."""


class StepBar:
    """A line on the terminal that follows the steps."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=None)

    def show(self, done: int, needed: int) -> None:
        if needed:
            said = "measuring links" if done == needed else "profiling"
            self._bar.update(self._task, description=said, completed=done, total=needed)


def run_job(command: Sequence[str], folder: Path, *, quiet_stdout: bool = False) -> int:
    """Its exit status. The output of the job is shown as it comes, on stderr if stdout is to be
    quiet; its progress is what its ranks leave in the folder."""
    console = Console(stderr=True)
    if not console.is_terminal:
        stdout = sys.stderr if quiet_stdout else None
        with _started(command, stdout=stdout) as job:
            return _wait(job, folder, Silent())
    with (
        Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        ) as bar,
        _started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job,
        # Looked up when something is said: while the bar is there, these are not what they were.
        _relayed(job.stdout, lambda: sys.stderr if quiet_stdout else sys.stdout),
        _relayed(job.stderr, lambda: sys.stderr),
    ):
        return _wait(job, folder, StepBar(bar))


@contextlib.contextmanager
def _started(
    command: Sequence[str], stdout: int | TextIO | None = None, stderr: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """In a session of its own, so that Ctrl-C reaches the job once: through us."""
    sys.stdout.flush()
    with _interruptible():
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    with started as job:
        try:
            yield job
        finally:
            if job.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(job.pid, signal.SIGKILL)


def _wait(job: subprocess.Popen[str], folder: Path, screen: Screen) -> int:
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        while job.poll() is None:
            screen.show(*progress(folder))
            time.sleep(_POLL_S)
    except KeyboardInterrupt:
        job.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            job.wait(_LAST_WORDS_S)
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)
    return int(job.returncode)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """What starts now can be interrupted, also where we were told to ignore it, as by nohup."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if before is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _relayed(source: IO[str] | None, target: Callable[[], TextIO]) -> Iterator[None]:
    def relay(lines: IO[str]) -> None:
        for line in lines:
            target().write(line)
            target().flush()

    if source is None:
        yield
        return
    thread = Thread(target=relay, args=(source,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(_POLL_S)
