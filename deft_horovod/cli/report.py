"""deft-profile report: what was measured or is predicted, as one page to look at and to pass on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from deft_horovod import policies
from deft_horovod.cli.inputs import parameters_for, plan_of_file
from deft_horovod.cli.output import Output, require_free
from deft_horovod.cli.plan import limit_options, planned
from deft_horovod.comparison import Comparison
from deft_horovod.errors import PlanError, explain
from deft_horovod.job.result_file import write
from deft_horovod.plan import Plan
from deft_horovod.profile import Profile
from deft_horovod.report.basics.findings import ReportInputs, findings
from deft_horovod.report.data import report_data
from deft_horovod.report.page import page
from deft_horovod.report.parts.headline import verdict_text

_DEFAULT_POLICY: Final = "least_stale"
_DEFAULT_PAGE: Final = Path("report.html")


class ReportFile(click.ParamType["Source"]):
    """A profile or a comparison, by the name of its file."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(value)
        if not path.is_file():
            self.fail(
                f"there is no file {path}; `deft-profile run` writes a profile, `deft-profile "
                "compare` a comparison",
                param,
                ctx,
            )
        return Source(path)


@dataclass(frozen=True)
class Source:
    """A file that is there."""

    path: Path

    def read(self) -> Profile | Comparison:
        """Whichever it is.

        Raises:
            PlanError: it is neither, or not well formed.
        """
        fields = _fields(self.path)
        if "verdict" in fields and "arms" in fields:
            raise PlanError(
                explain(
                    f"file {self.path} has only the summary of a comparison",
                    observed="what `deft-profile compare --json` prints",
                    expected="the file that it writes, comparison.json or the one named by -o",
                    action="name that one",
                )
            )
        if "arms" in fields:
            return Comparison.load(self.path)
        if "ready_order" in fields or not fields:
            return Profile.load(self.path)
        raise PlanError(
            explain(
                f"file {self.path} is neither a profile nor a comparison",
                observed=f"the fields {', '.join(sorted(fields))}"[:200],
                expected="what `deft-profile run` or `deft-profile compare` writes",
                action="name such a file",
            )
        )


@click.command(name="report")
@click.argument("source", type=ReportFile(), metavar="FILE")
@click.option(
    "--policy",
    type=click.Choice([name for name, p in policies.registry().items() if p.uses_executor]),
    metavar="POLICY",
    help=f"Of a profile: plan with this one.  [default: {_DEFAULT_POLICY}]",
)
@limit_options
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Of a profile: take the plan of this file, instead of making one.",
)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the report goes.  [default: report.html; the terminal with --json]",
)
@click.option("--force", is_flag=True, help="Overwrite a report that is there.")
@click.option("--json", "as_json", is_flag=True, help="What is behind the page, as JSON.")
def command(
    source: Source,
    plan_path: Path | None,
    path: Path | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Makes one page of HTML of a comparison or of a profile.

    FILE is what `deft-profile compare` wrote: then the page says what was measured. Or what
    `deft-profile run` wrote: then it says what is predicted, for the plan of a policy or of a file.
    The page needs no network and no scripts.
    """
    if path is None and not as_json:
        path = _DEFAULT_PAGE
    require_free(path, force=force)
    given = {name: value for name, value in options.items() if value is not None}
    found = findings(_inputs(source, plan_path, given))
    if as_json:
        Output(as_json=True, path=path, force=force).show(report_data(found))
    elif path is not None:
        write(path, page(found))
        click.echo(verdict_text(found))


def _inputs(source: Source, plan_path: Path | None, given: dict[str, Any]) -> ReportInputs:
    """What the options make of the file."""
    if plan_path is not None and given:
        raise click.UsageError(f"--plan has its plan; {_option_names(given)} would make another")
    read = source.read()
    if isinstance(read, Comparison):
        if given or plan_path is not None:
            names = _option_names(given) if given else "--plan"
            raise click.UsageError(f"a comparison has its plans; {names} is for a profile")
        plans = [arm.plan for arm in (read.ours, *read.arms) if arm.plan is not None]
        parameters = parameters_for(read.profile, plans[0] if plans else None)
        return ReportInputs.compared(source.path.name, read, parameters)
    words = {name.replace("_", " "): str(value) for name, value in given.items()}
    words.pop("policy", None)
    plan = _plan(read, plan_path, given)
    return ReportInputs(
        source=source.path.name,
        profile=read,
        parameters=parameters_for(read, plan),
        plan=plan,
        options=words if plan_path is None else {"plan file": plan_path.name},
    )


def _plan(profile: Profile, plan_path: Path | None, given: dict[str, Any]) -> Plan | None:
    """None: stock Horovod's own calls, or nothing travels."""
    if plan_path is not None:
        return plan_of_file(plan_path, profile)
    if not profile.links and not given:
        return None
    return planned(profile, **{"policy": _DEFAULT_POLICY, **given})


def _option_names(given: dict[str, Any]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in given)


def _fields(path: Path) -> dict[str, Any]:
    """Those of the JSON in a file; none where it is no JSON, which its reader then reports."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}
