"""deft-profile plan: what a policy would do with a profiled job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from deft_horovod import policies
from deft_horovod.cli.inputs import ProfileFile, accuracy_option, request_of
from deft_horovod.cli.output import Output, output_options, plot_option
from deft_horovod.config import Config
from deft_horovod.errors import NotSupportedError
from deft_horovod.job.result_file import write
from deft_horovod.picture.figure import picture
from deft_horovod.picture.timeline import draw
from deft_horovod.plan import Plan
from deft_horovod.preserver.judgement import affordable_text
from deft_horovod.profile import Profile
from deft_horovod.solver.predict.prediction import predict

_Command = TypeVar("_Command", bound=Callable[..., Any])


def limit_options(command: _Command) -> _Command:
    """What a plan may do, as `planned` takes it."""
    for option in (
        click.option(
            "--links",
            help="Names of the links to use, separated by commas.  [default: all that were "
            "measured]",
        ),
        click.option(
            "--late-share",
            type=click.FloatRange(0.0, 1.0),
            help="Share of the bytes that either may befall (least_stale).  [default: 1]",
        ),
        click.option(
            "--max-merge", type=click.IntRange(1), help="Steps that may travel as one sum."
        ),
        click.option(
            "--max-delay", type=click.IntRange(0), help="Steps that an update may come late."
        ),
        accuracy_option,
    ):
        command = option(command)
    return command


@click.command(name="plan")
@click.argument("profile", type=ProfileFile())
@click.option(
    "--policy",
    type=click.Choice([name for name, p in policies.registry().items() if p.uses_executor]),
    metavar="POLICY",
    default="least_stale",
    show_default=True,
    help="`auto` would plan what least_stale plans, if the trials in the job choose it.",
)
@limit_options
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="Type of the device that has the parameters, for a plan that a job is to run.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the plan to a file that `plan_file` reads.",
)
@plot_option("Draw the timeline")
@output_options
def command(
    profile: Profile, output: Output, save: Path | None, plot: Path | None, **options: Any
) -> None:
    """Plans for a profiled job, and says in words when each gradient would travel."""
    output.require_free(save, plot)
    plan = planned(profile, **options)
    if save is not None:
        write(save, plan.to_json() + "\n")
    if plot is not None:
        write(plot, picture(draw(plan, profile), plot.suffix[1:]))
    said = affordable_text(plan, policies.get(options["policy"]).correction)
    output.show(plan.model_dump(mode="json"), "\n".join([plan.describe(), *said]))


def planned(
    profile: Profile,
    *,
    policy: str,
    accuracy: str | None = None,
    max_delay: int | None = None,
    max_merge: int | None = None,
    late_share: float | None = None,
    links: str | None = None,
    device: str = "cpu",
) -> Plan:
    """The plan of a policy, with its prediction."""
    if not profile.links:
        raise NotSupportedError(
            "the profile has no link, so there is nothing to plan for; take it with two ranks or "
            "more (`deft-profile run -np 2 -- ...`)"
        )
    if links is not None:
        profile = with_links(profile, links.split(","))
    limits = {
        "accuracy": accuracy,
        "max_delay": max_delay,
        "max_merge": max_merge,
        "late_share": late_share,
    }
    config = Config.model_validate({name: v for name, v in limits.items() if v is not None})
    plan = policies.get(policy).plan(request_of(profile, config, device))
    return plan if plan.prediction is not None else predict(plan, profile)


def with_links(profile: Profile, names: list[str]) -> Profile:
    """The profile with these links only, in this order."""
    known = {link.name: link for link in profile.links}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(
            f"the profile has no link {', '.join(unknown)}; it has {', '.join(known)}"
        )
    return profile.model_copy(update={"links": tuple(known[name] for name in names)})
