"""A question to a training script: how its ranks are started, and what becomes of the answer."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from deft_horovod.cli.launch.launched_job import INTERRUPTED, run_job
from deft_horovod.cli.launch.python_command import PythonCommand
from deft_horovod.cli.output import require_free
from deft_horovod.config import Config
from deft_horovod.errors import DeftError
from deft_horovod.job.exit_report import ExitReport

_OVER_TORCH: Final = "deft_horovod.job.over_torch"


@dataclass(frozen=True)
class Question:
    """What is asked, and where the answer goes."""

    what: str  # 'profile'
    module: str  # that runs the script on each rank
    ranks: int | None  # to start; None: one, or those of the horovodrun around us
    path: Path
    force: bool = False
    as_json: bool = False
    torchrun: bool = False  # starts the ranks

    def ask(self, words: Sequence[str], options: Sequence[str]) -> None:
        """Returns with the answer in its file. Does not return when there is none, and on a rank
        of a horovodrun that the user has started."""
        python = PythonCommand.parse(words)
        rank = Config.launched_rank()
        if not rank:
            require_free(self.path, force=self.force)
            _require_writable(self.path.absolute().parent)
        _require_config()
        options = [*options, "--output", str(self.path.absolute())]
        if rank is not None:
            if self.ranks is not None or self.as_json:
                raise click.UsageError("under horovodrun, leave out -np and --json")
            sys.stdout.flush()
            rank_command = python.under([self.module], *options)
            os.execv(rank_command[0], rank_command)  # noqa: S606
        with tempfile.TemporaryDirectory(prefix="deft-profile-") as name:
            folder = Path(name)
            job = torchrun(self.ranks or 1) if self.torchrun else launcher(self.ranks or 1)
            modules = [_OVER_TORCH, self.module] if self.torchrun else [self.module]
            job += python.under(modules, *options, "--folder", name)
            status = run_job(job, folder, quiet_stdout=self.as_json)
            self._tell(python, status, ExitReport.found(folder))

    def _tell(self, python: PythonCommand, status: int, outcome: ExitReport | None) -> None:
        """What happened; ends with the script's status unless all went well."""
        nothing = f"no {self.what} was written"
        if status == INTERRUPTED:
            outcome = ExitReport(INTERRUPTED, f"{python.name} was interrupted; {nothing}")
        if outcome is None:
            died = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            outcome = ExitReport(
                128 - status if status < 0 else status or 1,
                f"{python.name} {died} and left no word; {nothing}",
            )
        click.echo(f"deft-profile: {outcome.message}", err=True)
        if outcome.status or status:
            sys.exit(outcome.status or status)


def _require_writable(folder: Path) -> None:
    """Said now, and not when the job is over."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".deft-profile-"):
            pass
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be written to: {error.strerror}") from error


def launcher(ranks: int) -> list[str]:
    """What to put before the command of a rank."""
    if ranks == 1:
        return []
    beside = Path(sys.executable).with_name("horovodrun")
    program = str(beside) if beside.is_file() else shutil.which("horovodrun")
    if program is None:
        raise click.UsageError("-np needs horovodrun, and it is neither here nor in PATH")
    return [program, "-np", str(ranks)]


def torchrun(ranks: int) -> list[str]:
    """The same for a job of torch.distributed, which needs no Horovod."""
    words = ["-m", "torch.distributed.run", "--standalone", "--no-python"]
    return [sys.executable, *words, "--nproc-per-node", str(ranks)]


def _require_config() -> None:
    """What the script's optimizer would refuse later."""
    try:
        config = Config.load(None)
    except DeftError as error:
        raise click.UsageError(str(error)) from error
    if config.disable:
        raise click.UsageError("DEFT_DISABLE is set, so nothing can be measured; unset it")
