"""deft-profile consolidate: the fewest machines for jobs that must keep a throughput."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from deft_horovod.capacity.answer.demands import tenants_of
from deft_horovod.capacity.answer.packings import ConsolidationAnswer, ToldPacking
from deft_horovod.capacity.answer.ranks import Seats
from deft_horovod.capacity.answer.sentences import consolidation_sentences
from deft_horovod.capacity.consolidate.exact import packed
from deft_horovod.capacity.input.capacity_file import CapacityFile, read_consolidation
from deft_horovod.capacity.schedule.budget import Budget
from deft_horovod.cli.capacity.options import (
    JobsFile,
    effort_option,
    html_option,
    simulating,
    stock_option,
    table,
)
from deft_horovod.cli.output import Output, output_options
from deft_horovod.job.result_file import write
from deft_horovod.report.consolidation import consolidation_page


@click.command(name="consolidate")
@click.argument("jobs", type=JobsFile())
@stock_option
@effort_option
@html_option
@output_options
def command(jobs: Path, output: Output, with_stock: bool, effort: float, html: Path | None) -> None:
    """The fewest machines on which all jobs keep their throughput, and which jobs share them.

    JOBS.YAML lists jobs with a throughput in samples a second, own machines and machines to rent.
    """
    output.require_free(html)
    answer = answered(read_consolidation(jobs), jobs.name, Budget(effort), with_stock=with_stock)
    if html is not None:
        write(html, consolidation_page(answer))
    sentences = "\n".join(consolidation_sentences(answer))
    output.show(answer.to_data(), _table(answer.ours), sentences)


def answered(
    file: CapacityFile, source: str, budget: Budget, *, with_stock: bool
) -> ConsolidationAnswer:
    """Simulates the jobs, then packs them."""
    seats = Seats()
    with simulating() as told:
        ours = tenants_of(file, seats, stock=False, told=told)
        stock = tenants_of(file, seats, stock=True, told=told) if with_stock else None
    return ConsolidationAnswer(
        source,
        ToldPacking(packed(ours, budget)),
        None if stock is None else ToldPacking(packed(stock, budget)),
    )


def _table(told: ToldPacking) -> Table:
    shown = table(("machine", "jobs and their ranks"), ("ranks left",))
    for one in told.shared:
        jobs = ", ".join(f"{name} {ranks}" for name, ranks in one.jobs)
        shown.add_row(one.machine, jobs, str(one.ranks_left))
    shown.add_row()
    return shown
