"""deft-profile compare: stock Horovod, or DDP, and ours, taking turns in the job itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from deft_horovod import policies
from deft_horovod.cli.inputs import accuracy_option, torchrun_option
from deft_horovod.cli.launch.script_request import Question
from deft_horovod.cli.output import Output
from deft_horovod.comparison import DDP, STOCK, Comparison
from deft_horovod.comparison.table import rendered, to_data
from deft_horovod.comparison.text import verdict
from deft_horovod.config import Config

_RANK: Final = "deft_horovod.job.compared_script"
_FEWEST_RANKS: Final = 2
_PROFILE_STEPS: Final = 10


@click.command(name="compare", context_settings={"allow_interspersed_args": False})
@click.option(
    "-np",
    "ranks",
    type=click.IntRange(_FEWEST_RANKS),
    help="Start so many ranks on this machine, with horovodrun. For other machines: horovodrun "
    "-np N -H host:slots,... deft-profile compare -- python train.py.",
)
@torchrun_option
@click.option(
    "--policy",
    type=click.Choice([name for name in policies.registry() if name != STOCK]),
    metavar="POLICY",
    help="Compare with this one.  [default: the script's own; auto where that is what the job does "
    "without us]",
)
@accuracy_option
@click.option("--max-delay", type=click.IntRange(0), help="Steps that an update may come late.")
@click.option("--max-merge", type=click.IntRange(1), help="Steps that may travel as one sum.")
@click.option(
    "--steps",
    "trial_steps",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Steps of each turn.",
)
@click.option(
    "--rounds",
    "trial_rounds",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="How often each has a turn.",
)
@click.option(
    "--warmup",
    type=click.IntRange(3),
    default=3,
    show_default=True,
    help="Steps before anything is measured. More, where the script compiles or its first steps "
    "are slow.",
)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("comparison.json"),
    show_default=True,
    help="Where everything that was measured goes.",
)
@click.option("--force", is_flag=True, help="Overwrite a comparison that is there.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="The verdict and what it rests on as JSON on stdout; what the script prints goes to "
    "stderr.",
)
@click.argument("words", metavar="[--] python SCRIPT [ARGUMENT]...", nargs=-1, required=True)
def command(
    ranks: int | None,
    torchrun: bool,
    path: Path,
    force: bool,
    as_json: bool,
    words: tuple[str, ...],
    **options: Any,
) -> None:
    """Runs a training script for some steps with stock Horovod and with ours, in turns.

    The script needs no change: `import horovod.torch` gives our optimizer here, and with --torchrun
    torch's DistributedDataParallel does, whose buckets (policy `ddp`) ours is compared with then. A
    profile is taken first, then the policies take turns; the script ends after that. Under
    horovodrun this is the program of each rank.
    """
    if torchrun and options["policy"] == DDP:
        raise click.UsageError("with --torchrun, ddp is what the others are compared with")
    if ranks is None and Config.launched_rank() is None:
        raise click.UsageError(
            f"there is nothing to compare on one rank: give -np {_FEWEST_RANKS} or more, or start "
            "it with horovodrun"
        )
    question = Question("comparison", _RANK, ranks, path, force, as_json, torchrun)
    given = {"steps": _PROFILE_STEPS, **options}
    question.ask(words, [w for name, value in given.items() for w in _option(name, value)])
    comparison = Comparison.load(path)
    Output(as_json=as_json).show(to_data(comparison), verdict(comparison), rendered(comparison))


def _option(name: str, value: object) -> list[str]:
    return [] if value is None else [f"--{name.replace('_', '-')}", str(value)]
