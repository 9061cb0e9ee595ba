"""deft-profile run: the profile of a training script, as it is."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from deft_horovod.cli.inputs import parameters_of
from deft_horovod.cli.job import INTERRUPTED, run_job
from deft_horovod.cli.layer_table import layer_table
from deft_horovod.cli.layers import summary
from deft_horovod.cli.outcome import Outcome
from deft_horovod.cli.output import Output, require_free
from deft_horovod.cli.python_command import PythonCommand
from deft_horovod.config import Config
from deft_horovod.errors import DeftError
from deft_horovod.profile import Profile

_RANK: Final = "deft_horovod.cli.profiled_script"


@click.command(name="run", context_settings={"allow_interspersed_args": False})
@click.option(
    "-np",
    "ranks",
    type=click.IntRange(1),
    help="Start so many ranks on this machine, with horovodrun. For other machines: horovodrun "
    "-np N -H host:slots,... deft-profile run -- python train.py.  [default: one, without Horovod]",
)
@click.option(
    "--steps", type=click.IntRange(1), default=10, show_default=True, help="Steps to measure."
)
@click.option(
    "--warmup",
    type=click.IntRange(3),
    default=3,
    show_default=True,
    help="Steps before those. More, where the script compiles or its first steps are slow.",
)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("profile.json"),
    show_default=True,
    help="Where the profile goes.",
)
@click.option("--force", is_flag=True, help="Overwrite a profile that is there.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="What was measured as JSON on stdout; what the script prints goes to stderr.",
)
@click.argument("words", metavar="[--] python SCRIPT [ARGUMENT]...", nargs=-1, required=True)
def command(
    ranks: int | None,
    steps: int,
    warmup: int,
    path: Path,
    force: bool,
    as_json: bool,
    words: tuple[str, ...],
) -> None:
    """Runs a training script for some steps, measures them, ends it and writes its profile.

    The script needs no change: it may use Horovod, deft_horovod, or neither on one rank. Under
    horovodrun this is the program of each rank.
    """
    python = PythonCommand.parse(words)
    rank = Config.launched_rank()
    if not rank:
        require_free(path, force=force)
        _require_writable(path.absolute().parent)
    _require_config()
    options = ["--steps", str(steps), "--warmup", str(warmup), "--output", str(path.absolute())]
    if rank is not None:
        if ranks is not None or as_json:
            raise click.UsageError("under horovodrun, leave out -np and --json")
        sys.stdout.flush()
        rank_command = python.under(_RANK, *options)
        os.execv(rank_command[0], rank_command)  # noqa: S606
    with tempfile.TemporaryDirectory(prefix="deft-profile-") as name:
        folder = Path(name)
        launcher = _launcher(ranks or 1)
        job = [*launcher, *python.under(_RANK, *options, "--folder", name)]
        status = run_job(job, folder, quiet_stdout=as_json)
        _tell(python, status, Outcome.found(folder))
    profile = Profile.load(path)
    table = layer_table(profile, parameters_of(profile))
    Output(as_json=as_json).show(table.to_data(), summary(table, profile))


def _require_writable(folder: Path) -> None:
    """Said now, and not when the job is over."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".deft-profile-"):
            pass
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be written to: {error.strerror}") from error


def _launcher(ranks: int) -> list[str]:
    if ranks == 1:
        return []
    beside = Path(sys.executable).with_name("horovodrun")
    launcher = str(beside) if beside.is_file() else shutil.which("horovodrun")
    if launcher is None:
        raise click.UsageError("-np needs horovodrun, and it is neither here nor in PATH")
    return [launcher, "-np", str(ranks)]


def _require_config() -> None:
    """What the script's optimizer would refuse later."""
    try:
        config = Config.load(None)
    except DeftError as error:
        raise click.UsageError(str(error)) from error
    if config.disable:
        raise click.UsageError("DEFT_DISABLE is set, so nothing can be measured; unset it")


def _tell(python: PythonCommand, status: int, outcome: Outcome | None) -> None:
    """What happened; ends with the script's status unless all went well."""
    if status == INTERRUPTED:
        outcome = Outcome(INTERRUPTED, f"{python.name} was interrupted; no profile was written")
    if outcome is None:
        died = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        outcome = Outcome(
            128 - status if status < 0 else status or 1,
            f"{python.name} {died} and left no word; no profile was written",
        )
    click.echo(f"deft-profile: {outcome.message}", err=True)
    if outcome.status or status:
        sys.exit(outcome.status or status)
