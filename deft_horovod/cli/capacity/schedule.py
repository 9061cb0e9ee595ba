"""deft-profile capacity: jobs on machines, so that deadlines hold for the least rent."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import RenderableType

from deft_horovod.capacity.answer.demands import demand_of
from deft_horovod.capacity.answer.ranks import Seats
from deft_horovod.capacity.answer.schedules import CapacityAnswer, Told
from deft_horovod.capacity.answer.sentences import capacity_sentences, money
from deft_horovod.capacity.input.capacity_file import CapacityFile, read_schedule
from deft_horovod.capacity.input.duration import duration_text
from deft_horovod.capacity.schedule.budget import Budget
from deft_horovod.capacity.schedule.exact import solved
from deft_horovod.cli.capacity.options import (
    JobsFile,
    effort_option,
    html_option,
    simulating,
    stock_option,
    table,
)
from deft_horovod.cli.output import Output, output_options, plot_option
from deft_horovod.job.result_file import write
from deft_horovod.picture.figure import picture, require_matplotlib
from deft_horovod.picture.gantt import draw
from deft_horovod.report.capacity import capacity_page


@click.command(name="capacity")
@click.argument("jobs", type=JobsFile())
@stock_option
@effort_option
@plot_option("Draw which job runs where and when")
@html_option
@output_options
def command(
    jobs: Path,
    output: Output,
    with_stock: bool,
    effort: float,
    plot: Path | None,
    html: Path | None,
) -> None:
    """Which jobs run on which machines and when, so that all deadlines hold for the least rent.

    JOBS.YAML lists jobs, own machines and machines to rent. How long a job takes on so many ranks
    is simulated from its profile, with the plan that `auto` would keep.
    """
    output.require_free(plot, html)
    if plot is not None:
        require_matplotlib()  # before the work
    answer = answered(read_schedule(jobs), jobs.name, Budget(effort), with_stock=with_stock)
    if plot is not None:
        write(plot, picture(draw(answer.ours.found.schedule), plot.suffix[1:]))
    if html is not None:
        write(html, capacity_page(answer))
    shown = _tables(answer.ours)
    if answer.stock is not None:
        shown += ["with stock Horovod:\n", *_tables(answer.stock)]
    output.show(answer.to_data(), *shown, "\n".join(capacity_sentences(answer)))


def answered(
    file: CapacityFile, source: str, budget: Budget, *, with_stock: bool
) -> CapacityAnswer:
    """Simulates the jobs, then places them."""
    seats = Seats()
    with simulating() as told:
        ours = demand_of(file, seats, stock=False, told=told)
        stock = demand_of(file, seats, stock=True, told=told) if with_stock else None
    return CapacityAnswer(
        source,
        Told(solved(ours, budget)),
        None if stock is None else Told(solved(stock, budget)),
    )


def _tables(told: Told) -> list[RenderableType]:
    jobs = table(("job", "machines"), ("ranks", "from", "to", "deadline", "slack"))
    for row in told.jobs:
        times_s = (row.from_s, row.to_s, row.deadline_s, row.slack_s)
        jobs.add_row(row.job, row.machines, str(row.ranks), *map(duration_text, times_s))
    jobs.add_row()
    rented = table(("rented",), ("from", "to", "rent"))
    for one in told.rented:
        times = (duration_text(one.from_s), duration_text(one.to_s))
        rented.add_row(one.machine, *times, money(one.rent))
    rented.add_row()
    return [jobs, *([rented] if told.rented else [])]
