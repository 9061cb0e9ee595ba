"""What ranks tell each other over torch.distributed, by the names of Horovod."""

from __future__ import annotations

import torch
import torch.distributed as dist

from deft_horovod.distributed import DistributedOptimizer
from deft_horovod.peers import OVER_TORCH, stock
from deft_horovod.runtime.ranks.agreement import Agreement
from tests.parallel.scripts.distributed.job import run_in_job

GROUP = stock.global_process_set


def case_who_is_there() -> None:
    assert OVER_TORCH
    assert stock.is_initialized()
    assert (stock.rank(), stock.size()) == (dist.get_rank(), dist.get_world_size())
    assert GROUP.ranks == list(range(GROUP.size()))
    assert GROUP.rank() == stock.rank()
    assert GROUP.included()


def case_agreement() -> None:
    asks, rank, size = Agreement(GROUP, 20.0), stock.rank(), stock.size()
    assert asks.everyone_here()
    asks.require_equal({"a": 1})
    assert asks.collect("x" * rank) == ["x" * r for r in range(size)]
    assert asks.union([rank == 1, False]) == [True, False]
    assert asks.gather([float(rank), 2.0]) == [[float(r), 2.0] for r in range(size)]
    assert asks.share("said by 0" if rank == 0 else None) == "said by 0"


def case_sparse_sums_and_averages() -> None:
    rank, size = stock.rank(), stock.size()
    rows = torch.arange(rank + 1).unsqueeze(0)  # the first one on all ranks, twice on rank 1
    rows = torch.cat([rows, rows[:, :rank]], 1)
    mine = torch.sparse_coo_tensor(rows, torch.ones(rows.shape[1], 2), (size + 1, 2))
    found = stock.sparse_allreduce_async(mine, "s", stock.Sum, process_set=GROUP)().to_dense()
    everyone = [torch.zeros(size + 1, 2) for _ in range(size)]
    dist.all_gather(everyone, mine.to_dense())
    assert torch.equal(found, sum(everyone))
    average = stock.sparse_allreduce_async(mine, "s", stock.Average, process_set=GROUP)()
    assert torch.allclose(average.to_dense(), found / size)


def case_compression() -> None:
    values = torch.tensor([1.0, 1e-9, 65504.0])
    small, context = stock.Compression.fp16.compress(values)
    assert small.dtype == torch.float16
    assert stock.Compression.fp16.decompress(small, context).dtype == torch.float32
    whole = torch.arange(3)
    assert stock.Compression.fp16.compress(whole)[0] is whole
    same, context = stock.Compression.none.compress(values)
    assert stock.Compression.none.decompress(same, context) is values


def case_what_is_refused() -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    refused = [
        ({"compression": "fp8"}, "compression is unknown"),
        ({"backward_passes_per_step": 0}, "must be > 0"),
        ({"config": {"disable": True}}, "there is no other optimizer"),
        ({"policy": "dear"}, "reduce-scatters"),
    ]
    for arguments, said in refused:
        try:
            DistributedOptimizer(optimizer, model, **arguments)
        except ValueError as error:
            assert said in str(error), error
        else:
            raise AssertionError(arguments)
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    try:
        DistributedOptimizer(optimizer, wrapped)
    except ValueError as error:
        assert "would average first" in str(error)
    else:
        raise AssertionError("a wrapped model")


def case_horovods_side_is_refused() -> None:
    try:
        import deft_horovod.torch  # noqa: F401
    except ValueError as error:
        assert "imported after deft_horovod.distributed" in str(error)
    else:
        raise AssertionError("both were imported")


if __name__ == "__main__":
    run_in_job(globals())
