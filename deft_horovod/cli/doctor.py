"""deft-profile doctor: what is wrong with a set-up, and what to do about it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click
from rich.table import Table

from deft_horovod.cli.launch.launched_job import INTERRUPTED, run_job
from deft_horovod.cli.launch.script_request import launcher
from deft_horovod.cli.output import Output, output_options
from deft_horovod.config import Config
from deft_horovod.doctor.diagnosis import Finding, diagnose
from deft_horovod.doctor.machine import Checkup
from deft_horovod.job.doctor_rank import ANSWER, checkup

_RANK: Final = "deft_horovod.job.doctor_rank"
_SIGNS: Final = {"problem": "problem", "note": "could be better", "ok": "ok"}


@click.command(name="doctor")
@click.option(
    "-np",
    "ranks",
    type=click.IntRange(1),
    default=1,
    help="Start so many ranks on this machine, with horovodrun. For other machines: horovodrun "
    "-np N -H host:slots,... deft-profile doctor.  [default: one, which measures no link]",
)
@output_options
def command(output: Output, ranks: int) -> None:
    """Examines versions, extension, cores, network interfaces, settings and links of all ranks.

    Exit status 1: there is a problem.
    """
    rank = Config.launched_rank()
    if rank is not None and ranks > 1:
        raise click.UsageError("under horovodrun, leave out -np")
    if not rank:
        output.require_free()
    found = _examined(ranks, output) if rank is None else checkup()
    if rank:
        return
    findings = diagnose(found)
    data = {
        "findings": [asdict(finding) for finding in findings],
        "checkup": found.model_dump(mode="json"),
    }
    output.show(data, rendered(findings))
    if any(finding.level == "problem" for finding in findings):
        sys.exit(1)


def _examined(ranks: int, output: Output) -> Checkup:
    with tempfile.TemporaryDirectory(prefix="deft-profile-") as name:
        job = [*launcher(ranks), sys.executable, "-m", _RANK, name]
        status = run_job(job, Path(name), quiet_stdout=output.as_json)
        if status == INTERRUPTED:
            click.echo("deft-profile: interrupted", err=True)
            sys.exit(INTERRUPTED)
        answer = Path(name) / ANSWER
        if not answer.is_file():
            raise click.ClickException(
                f"the examination ended with status {status}; what its ranks said is above"
            )
        return Checkup.load(answer)


def rendered(findings: Sequence[Finding]) -> Table:
    """For a person; what is to be done stands below what was found."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    shown.add_column(no_wrap=True)
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for finding in findings:
        shown.add_row(_SIGNS[finding.level], finding.subject, finding.text)
        if finding.advice:
            shown.add_row("", "", f"-> {finding.advice}")
    return shown
