"""What a file asks for, as numbers for the methods."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final, NoReturn

from deft_horovod.capacity.answer.ranks import Seats, room
from deft_horovod.capacity.consolidate.tenants import Offer, Tenant, Tenants
from deft_horovod.capacity.input.capacity_file import CapacityFile
from deft_horovod.capacity.input.job_entry import JobEntry
from deft_horovod.capacity.problem.demand import Demand
from deft_horovod.capacity.problem.work import Way, Work

Hears = Callable[[str], object]
_NEAR: Final = 1e-6  # seconds that sums of floats may be too much


def demand_of(file: CapacityFile, seats: Seats, *, stock: bool, told: Hears) -> Demand:
    """With step times of our plans, or of stock Horovod. `told` hears which job is simulated.

    Raises:
        ConfigError: a job fits on no machine.
    """
    works = []
    for job in file.jobs:
        told(job.name)
        ways = _ways(file, job, seats, stock=stock)
        works.append(Work(job.name, job.release_s, job.deadline_s, job.memory_bytes, ways))
    return Demand(tuple(works), tuple(machine.kind for machine in file.machines))


def tenants_of(file: CapacityFile, seats: Seats, *, stock: bool, told: Hears) -> Tenants:
    """With all numbers of ranks that are fast enough.

    Raises:
        ConfigError: a job is fast enough on no machine.
    """
    tenants = []
    for job in file.jobs:
        told(job.name)
        offers = _offers(file, job, seats, stock=stock)
        tenants.append(Tenant(job.name, job.memory_bytes, offers))
    return Tenants(tuple(tenants), tuple(machine.kind for machine in file.machines))


def _ways(file: CapacityFile, job: JobEntry, seats: Seats, *, stock: bool) -> tuple[Way, ...]:
    """Of more ranks only those that are faster."""
    found: list[Way] = []
    for index, machine in enumerate(file.machines):
        fastest_s: int | None = None
        for seat in seats.of(job, machine):
            whole_us = job.steps_on(seat.ranks) * seat.step_us(stock=stock)
            duration_s = max(1, ceil(whole_us / 1e6 - _NEAR))
            if fastest_s is None or duration_s < fastest_s:
                found.append(Way(index, seat.ranks, seat.machines, duration_s))
                fastest_s = duration_s
    if not found:
        _fits_nowhere(file, job)
    return tuple(found)


def _offers(file: CapacityFile, job: JobEntry, seats: Seats, *, stock: bool) -> tuple[Offer, ...]:
    """The fewest ranks that are fast enough, on one machine and on several."""
    found: list[Offer] = []
    best = 0.0
    for index, machine in enumerate(file.machines):
        for together in (True, False):
            tried = seats.together(job, machine) if together else seats.spread(job, machine)
            for seat in tried:
                rate = job.batch * seat.ranks * 1e6 / seat.step_us(stock=stock)
                best = max(best, rate)
                if rate >= (job.throughput or 0.0):
                    found.append(Offer(index, seat.ranks, together))
                    break
    if not found and not best:
        _fits_nowhere(file, job)
    if not found:
        job.entry.fail(
            f"job {job.name} is fast enough on no machine",
            "throughput",
            observed=f"{job.throughput:g} samples a second",
            expected=f"at most {best:.1f}, which these machines reach",
            action="ask for less, allow more ranks, or list faster machines",
        )
    return tuple(found)


def _fits_nowhere(file: CapacityFile, job: JobEntry) -> NoReturn:
    most = max(room(job, machine) for machine in file.machines)
    memory = max(machine.kind.memory_bytes for machine in file.machines)
    if not most:
        job.entry.fail(
            f"job {job.name} fits on no machine: a rank needs more memory than any has",
            "memory",
            observed=f"{job.memory_bytes:,} bytes a rank",
            expected=f"at most {memory:,} bytes, as the largest machine has",
            action="lower memory, or list a larger machine",
        )
    job.entry.fail(
        f"job {job.name} fits on no machine: it needs more ranks than a kind of machine has",
        "min_ranks",
        observed=f"min_ranks {job.min_ranks}, max_ranks {job.max_ranks}",
        expected=f"at most {most} ranks on one machine, or all ranks of several",
        action="lower min_ranks or memory, or list more or larger machines",
    )
