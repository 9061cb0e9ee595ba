"""deft-profile run: the profile of a training script, as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from deft_horovod.cli.inputs import parameters_of, torchrun_option
from deft_horovod.cli.launch.script_request import Question
from deft_horovod.cli.layers import summary
from deft_horovod.cli.output import Output
from deft_horovod.profile import Profile
from deft_horovod.profile.layer_table import layer_table

_RANK: Final = "deft_horovod.job.profiled_script"


@click.command(name="run", context_settings={"allow_interspersed_args": False})
@click.option(
    "-np",
    "ranks",
    type=click.IntRange(1),
    help="Start so many ranks on this machine, with horovodrun. For other machines: horovodrun "
    "-np N -H host:slots,... deft-profile run -- python train.py.  [default: one, without Horovod]",
)
@torchrun_option
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
    torchrun: bool,
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
    question = Question("profile", _RANK, ranks, path, force, as_json, torchrun)
    question.ask(words, ["--steps", str(steps), "--warmup", str(warmup)])
    profile = Profile.load(path)
    table = layer_table(profile, parameters_of(profile))
    Output(as_json=as_json).show(table.to_data(), summary(table, profile))
