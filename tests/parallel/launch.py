"""Runs a rank program under horovodrun and brings back what every rank said.

A hang is a failure: at the time limit every process of the job is killed, also those that Horovod's
launcher has put into sessions of their own, and the error shows the output so far.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Final

import psutil

from tests.parallel import warm_launcher, warm_ranks
from tests.places import ROOT

SCRIPTS: Final = Path(__file__).parent / "scripts"
_MARK: Final = "PARALLEL_TEST_JOB"
_LINE: Final = re.compile(r"^\[(?:1,)?(\d+)\]<(?:stdout|stderr)>:(.*)$")
_SHOWN_CHARACTERS: Final = 6000
_TO_WRITE_S: Final = 3.0
# How ranks are started, up to their number; the suites run as well under any of those of Horovod
# (docs/guide/launchers.md).
LAUNCHERS: Final = {
    "gloo": ("horovodrun", "--gloo", "-np"),
    "mpi": ("horovodrun", "--mpi", "-np"),
    "mpirun": (
        *("mpirun", "--allow-run-as-root", "--oversubscribe", "--tag-output"),
        *("--bind-to", "none", "--map-by", "slot", "-np"),
    ),
    "torchrun": ("torchrun", "--standalone", "--no-python", "--nproc-per-node"),
}
# What their ranks import, so that it can be done before.
_WARM: Final = {"gloo": "deft_horovod.torch", "torchrun": "deft_horovod.distributed"}


class JobHungError(AssertionError):
    """A job did not end in time; it was killed. `result` is what it had left behind by then."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True)
class Result:
    """What a job left behind."""

    returncode: int
    out_by_rank: dict[int, str]  # stdout and stderr
    results: list[Any]  # what each rank reported, by rank; None: it reported nothing
    output: str  # everything, with the launcher's own messages
    duration_s: float

    def require_success(self) -> Result:
        """Fails with the output unless every rank ended well and reported."""
        complete = all(result is not None for result in self.results)
        if self.returncode != 0 or not complete:
            said = self.output[-_SHOWN_CHARACTERS:]
            raise AssertionError(f"the job ended with status {self.returncode}:\n{said}")
        return self


def run_ranks(
    script: Path | str,
    np: int,
    *args: str,
    timeout_s: float = 120,
    env: Mapping[str, str] | None = None,
    options: Any = None,
    launcher: Sequence[str] = (),
    interpreter: Sequence[str] = (),
) -> Result:
    """Runs ``horovodrun -np NP LAUNCHER python INTERPRETER script args``, or what TEST_LAUNCHER
    names (in `env`, or around this process) instead of horovodrun. But for MPI, ranks are forks of
    a process that has done their imports (warm_ranks.py).

    horovodrun reads its own options by prefix up to the program's name, so what a rank program has
    to know goes into `options`: any JSON, read with ``reporting.options()``. A script that is only
    a name is looked for in tests/parallel/scripts.

    Raises:
        JobHungError: the job did not end within `timeout_s`.
    """
    path = Path(script) if Path(script).is_absolute() else SCRIPTS / script
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="parallel-") as folder:
        environment = _environment(env, Path(folder), mark, options)
        kind = environment.get("TEST_LAUNCHER", "gloo")
        program, *words = LAUNCHERS[kind]
        beside = Path(sys.executable).with_name(program)
        command = [str(beside) if beside.exists() else program, *words]
        command += [str(np), *launcher]
        python = [sys.executable, *interpreter]
        if kind in _WARM and not interpreter:
            python = warm_ranks.interpreter(_WARM[kind], environment)
            environment["PARALLEL_PYTHON"] = json.dumps(python)
        command += [*python, str(path), *args]
        started_s = time.monotonic()
        status, output, hung = _run(command, timeout_s, environment, mark)
        duration_s = time.monotonic() - started_s
        results = [_read(Path(folder) / f"rank.{rank}.json") for rank in range(np)]
    result = Result(status, _by_rank(output, np), results, output, duration_s)
    if hung:
        said = output[-_SHOWN_CHARACTERS:]
        raise JobHungError(f"no end within {timeout_s} s: {' '.join(command)}\n{said}", result)
    return result


def _environment(
    extra: Mapping[str, str] | None, folder: Path, mark: str, options: Any
) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HOROVOD_", "DEFT_"))}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH", "")]))
    return kept | {
        "OMP_NUM_THREADS": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",  # else ranks that wait keep the cores from the others
        # Of two jobs that start at once on a new machine, one fails to make their common folder.
        "OMPI_MCA_orte_tmpdir_base": str(folder),
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONPATH": path,
        "PARALLEL_RESULTS": str(folder),
        "TMPDIR": str(folder),  # what ranks leave there goes with it
        "PARALLEL_OPTIONS": json.dumps(options),
        _MARK: mark,
        **(extra or {}),
    }


def _run(
    command: Sequence[str], timeout_s: float, env: dict[str, str], mark: str
) -> tuple[int, str, bool]:
    # A file, not a pipe: a rank that survives its launcher cannot keep us waiting for its end.
    with tempfile.NamedTemporaryFile("r", errors="replace") as output:
        job = warm_launcher.start(command, env, output.name)
        try:
            job.join(timeout_s)
            hung = job.exitcode is None
        finally:
            _kill(job, mark)
        return job.exitcode or 0, output.read(), hung


def _kill(job: ForkServerProcess, mark: str) -> None:
    """Everything that carries the mark of this job, and only that."""
    if job.exitcode is None:
        _ask_where_they_are(mark)
        job.kill()
        job.join()
    for process in _marked(mark):
        with contextlib.suppress(psutil.Error):
            process.kill()


def _ask_where_they_are(mark: str) -> None:
    """Ranks that hang write the stacks of their threads, and end."""
    ranks = [process for process in _marked(mark) if not _marked_children(process, mark)]
    for rank in ranks:
        with contextlib.suppress(psutil.Error):
            rank.send_signal(signal.SIGABRT)
    psutil.wait_procs(ranks, timeout=_TO_WRITE_S)


def _marked(mark: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _has(process, mark)]


def _marked_children(process: psutil.Process, mark: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return any(_has(child, mark) for child in process.children())
    return False


def _has(process: psutil.Process, mark: str) -> bool:
    with contextlib.suppress(psutil.Error):  # it ended meanwhile, or is somebody else's
        return bool(process.environ().get(_MARK) == mark)
    return False


def _read(path: Path) -> Any:
    return json.loads(path.read_text()) if path.is_file() else None


def _by_rank(output: str, np: int) -> dict[int, str]:
    lines: dict[int, list[str]] = {rank: [] for rank in range(np)}
    for line in output.splitlines():
        found = _LINE.match(line)
        if found:
            lines.setdefault(int(found.group(1)), []).append(found.group(2))
    return {rank: "\n".join(said) for rank, said in lines.items()}
