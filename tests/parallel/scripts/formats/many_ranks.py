"""Messages that have owners, with chunks of several sizes: replicas stay equal and memory is as
planned, of all ranks and of some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import horovod.torch as stock
import torch
from torch import nn

import deft_horovod.torch as hvd
from deft_horovod.plan.formats import rest_bytes
from deft_horovod.runtime.reduce.encoded import encodings_of
from tests.parallel.scripts.patience import wait_patiently
from tests.parallel.scripts.reporting import cases_in, run_cases
from tests.parallel.scripts.runtime.formats import Job
from tests.parallel.scripts.training import CLASSES, WIDTH, digest

STEPS = 4
SETS = ([0, 3, 6], [1, 2, 4, 5, 7])  # ranks that train by themselves


def uneven(seed: int = 0) -> nn.Module:
    """A matrix whose elements no number of ranks divides into whole blocks."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(WIDTH, 641), nn.Tanh(), nn.Linear(641, 643), nn.Tanh(), nn.Linear(643, CLASSES)
    )


class Members(Job):
    """Ranks of a process set that train; the others know the plan, and do nothing."""

    def wrap(self, model: nn.Module) -> Any:
        return super().wrap(model) if self.options["process_set"].included() else None


def _everyones(values: list[int], process_set: Any) -> list[list[int]]:
    mine = torch.tensor([values])
    name = f"everyones.{process_set.process_set_id}.{len(values)}"
    found: list[list[int]] = stock.allgather(mine, name=name, process_set=process_set).tolist()
    return found


def _check_replicas(job: Job, process_set: Any) -> None:
    before = digest(uneven().parameters())
    for _ in range(STEPS):
        job.step()
    mine = digest(job.model.parameters())
    assert mine != before
    assert all(bool(p.isfinite().all()) for p in job.model.parameters())
    everyone = _everyones([*bytes.fromhex(mine)], process_set)
    assert all(other == everyone[0] for other in everyone), "replicas differ"


def _check_owners(job: Job, process_set: Any) -> None:
    """They are used, each sums a part of its own size, and rests take what the plan says."""
    plan, ranks = job.optimizer.plan, process_set.size()
    encodings = encodings_of(plan, process_set.rank(), ranks).values()
    sums = sum(one.sum_rest.numel() for one in encodings if one.owners > 1)
    everyone = _everyones([sums, job.optimizer.stats()["rest_bytes"]], process_set)
    assert all(sums for sums, _ in everyone)
    assert len({sums for sums, _ in everyone}) > 1
    assert sum(size_bytes for _, size_bytes in everyone) == rest_bytes(plan, ranks)


def case_replicas_stay_equal() -> None:
    for wire_format in ("int8", "int4", "f16"):
        job = Job(wire_format, model=uneven())
        _check_replicas(job, stock.global_process_set)
        _check_owners(job, stock.global_process_set)


def case_some_of_the_ranks(sets: Sequence[Any] = ()) -> None:
    """Both sets at once."""
    for process_set in sets:
        job = Members("int8", model=uneven(), process_set=process_set)
        if process_set.included():
            _check_replicas(job, process_set)
            _check_owners(job, process_set)
    stock.barrier()


def main() -> None:
    sets = [stock.ProcessSet(ranks) for ranks in SETS]
    hvd.init(process_sets=sets)
    torch.set_num_threads(1)
    wait_patiently()
    cases = cases_in(globals())
    run_cases({**cases, "some_of_the_ranks": lambda: case_some_of_the_ranks(sets)})


if __name__ == "__main__":
    main()
