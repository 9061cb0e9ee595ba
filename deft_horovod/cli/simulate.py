"""deft-profile simulate: what a profiled job would do with more ranks, or on other links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, product
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from deft_horovod import policies
from deft_horovod.base.rate import parse_rate
from deft_horovod.cli.inputs import ProfileFile, accuracy_option, request_of
from deft_horovod.cli.list_options import CommaList
from deft_horovod.cli.output import Output, output_options, plot_option
from deft_horovod.config import Config
from deft_horovod.errors import ConfigError
from deft_horovod.job.result_file import write
from deft_horovod.picture.figure import picture, require_matplotlib
from deft_horovod.picture.scaling import draw
from deft_horovod.policies import Policy, Request
from deft_horovod.profile import Profile
from deft_horovod.simulate.cluster import FEWEST_RANKS, LATENCY_US, MOST_RANKS, Cluster
from deft_horovod.simulate.outlook import Outlook, Scenario

ALL: Final = "all"
_MS: Final = 1e-3
_AUTO: Final = "auto"
_RANKS: Final = "16,64,256,1024"


def _ranks(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a number of ranks")
    if not FEWEST_RANKS <= int(text) <= MOST_RANKS:
        reason = "one rank alone sends nothing" if int(text) == 1 else "that is no cluster"
        raise ValueError(f"{text} ranks: {reason}; give {FEWEST_RANKS} to {MOST_RANKS}")
    return int(text)


def _policy(text: str) -> str:
    known = [ALL, *_simulated()]
    if text == _AUTO:
        raise ValueError(
            "'auto' measures in the job itself and keeps the fastest of stock, bucket, priority "
            "and least_stale; simulate these"
        )
    if text not in known:
        raise ValueError(f"there is no policy {text!r}; choose from {', '.join(known)}")
    return text


@click.command(name="simulate")
@click.argument("profile", type=ProfileFile())
@click.option(
    "--policy",
    "names",
    type=CommaList("names", _policy),
    multiple=True,
    default=(ALL,),
    help="Separated by commas, or given several times.  [default: all]",
)
@click.option(
    "--ranks",
    type=CommaList("numbers", _ranks),
    default=_RANKS,
    show_default=True,
    help="Separated by commas.",
)
@click.option(
    "--link",
    "rates",
    type=CommaList("rates", parse_rate),
    help="Rates of each rank's link, such as 10gbit,25gbit.  [default: the measured links]",
)
@click.option(
    "--latency",
    "latency_us",
    type=click.FloatRange(0.0, 1e6),
    default=LATENCY_US,
    show_default=True,
    help="Microseconds of each further round of the ring.",
)
@click.option("--max-delay", type=click.IntRange(0), help="Steps that an update may come late.")
@click.option("--max-merge", type=click.IntRange(1), help="Steps that may travel as one sum.")
@accuracy_option
@plot_option("Draw efficiency over ranks and over links")
@output_options
def command(
    profile: Profile,
    output: Output,
    names: Sequence[tuple[str, ...]],
    ranks: Sequence[int],
    rates: Sequence[float] | None,
    plot: Path | None,
    **options: Any,
) -> None:
    """Step time, exposed communication and efficiency with more ranks or on other links.

    Every rank computes what it computed when the profile was taken (the batch of a rank stays as
    it is). `floor` is what no plan that is as late as the policy may be could go below.
    """
    output.require_free(plot)
    if plot is not None:
        require_matplotlib()  # before the work
    latency_us = float(options.pop("latency_us") or 0.0)
    request = request_of(profile, Config.model_validate(options))
    of_links: list[float | None] = [*rates] if rates else [None]
    clusters = [Cluster(count, rate, latency_us) for rate, count in product(of_links, ranks)]
    found = list(outlooks(request, clusters, [*chain(*names)]))
    if plot is not None:
        write(plot, picture(draw(found), plot.suffix[1:]))
    data = {
        "profile": profile.hash(),
        "compute_us": profile.compute_us,
        "latency_us": latency_us,
        "outlooks": [outlook.to_data() for outlook in found],
    }
    output.show(data, rendered(found), summary(found))


def outlooks(
    request: Request, clusters: Sequence[Cluster], names: Sequence[str]
) -> Iterator[Outlook]:
    """By cluster, then by policy. Of `all` those are left out that the options rule out."""
    wanted = _simulated() if ALL in names else dict.fromkeys(names)
    chosen = [policies.get(name) for name in wanted]
    chosen = [policy for policy in chosen if ALL not in names or _is_possible(policy, request)]
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("simulating", total=len(clusters) * len(chosen))
        for cluster in clusters:
            scenario = Scenario(request, cluster)
            for policy in chosen:
                progress.update(task, description=f"{policy.name}, {cluster.ranks} ranks")
                yield scenario.outlook(policy)
                progress.advance(task)


def _simulated() -> dict[str, Policy]:
    """Stock Horovod first, as all others compare with it."""
    known = {name: policy for name, policy in policies.registry().items() if name != _AUTO}
    return dict(sorted(known.items(), key=lambda entry: entry[1].uses_executor))


def _is_possible(policy: Policy, request: Request) -> bool:
    """Whether the options leave it anything to do. What it would plan before a link was measured
    tells, and says so on stderr."""
    unmeasured = request.profile.model_copy(update={"links": ()})
    try:
        policy.plan(replace(request, profile=unmeasured))
    except ConfigError as error:
        click.echo(f"left out: {error}", err=True)
        return False
    return True


def rendered(found: Sequence[Outlook]) -> Table:
    """For a person: a block for each cluster."""
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("policy", no_wrap=True)
    for title in (
        "ranks",
        "link",
        "step\nms",
        "floor\nms",
        "exposed\nms",
        "over\nstock",
        "effi-\nciency",
        "late\nsteps",
        "sent\nbytes",
    ):
        shown.add_column(title, justify="right", no_wrap=True)
    for _, block in groupby(found, lambda outlook: (outlook.link, outlook.ranks)):
        for outlook in block:
            shown.add_row(
                outlook.policy,
                str(outlook.ranks),
                outlook.link,
                f"{outlook.step_us * _MS:.1f}",
                f"{outlook.floor_us * _MS:.1f}",
                f"{outlook.exposed_us * _MS:.1f}",
                f"{outlook.speedup:.2f}x",
                f"{outlook.efficiency:.1%}",
                f"{outlook.staleness_steps:.2f}",
                f"{outlook.sent_share:.0%}",
            )
        shown.add_row()
    return shown


def summary(found: Sequence[Outlook]) -> str:
    """What the columns say."""
    compute_ms = found[0].compute_us * _MS
    return (
        f"computing takes {compute_ms:.1f} ms a step; efficiency: its share of the step\n"
        "floor: no plan that is as late as the policy may be takes less\n"
        "late: steps from a gradient to its update, the mean over the bytes\n"
        "sent bytes: of the gradients' own, less where they travel in wire formats"
    )
