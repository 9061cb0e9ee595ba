"""The stand-in for DistributedDataParallel, beside torch's own."""

from __future__ import annotations

from typing import Any, Final

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as Torchs

from tests.parallel.scripts.distributed.beside_ddp import (
    accumulate,
    bits,
    loss_of,
    model,
    momentum,
    require_equal_on_all_ranks,
)
from tests.parallel.scripts.distributed.job import run_in_job
from tests.parallel.scripts.distributed.taken import Ours, compare, plain, refused

STEPS: Final = 24


def quiet(ddp: Any, make: Any) -> Any:
    module = ddp(model(), broadcast_buffers=False)
    optimizer = make(module)
    accumulate(module, optimizer, module.no_sync)
    return module


def case_no_sync() -> None:
    compare(quiet)


def outside(ddp: Any, make: Any) -> Any:
    """The forward decides: a backward inside of one that was outside travels."""
    module = ddp(model())
    optimizer = make(module)
    for step in range(6):
        loss = loss_of(module, step)
        with module.no_sync():
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return module


def case_the_forward_decides() -> None:
    compare(outside)


def halved(ddp: Any, make: Any) -> Any:
    module = ddp(model())
    module.register_comm_hook(None, default_hooks.fp16_compress_hook)
    optimizer = make(module)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(module, step).backward()
        optimizer.step()
    return module


def case_half() -> None:
    mine, torchs = halved(Ours, momentum), halved(Torchs, momentum)
    require_equal_on_all_ranks(mine)
    for one, other in zip(mine.parameters(), torchs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0.0, atol=2e-3)
    assert bits(mine.parameters()) != bits(plain(Ours, momentum).parameters())


def case_refused() -> None:
    module = Ours(model())
    refused(module.join, "join()")
    refused(lambda: module.register_comm_hook(None, default_hooks.bf16_compress_hook), "hook")
    refused(lambda: Ours(model(), process_group=dist.new_group([0])), "process_group")


def case_buffers_at_the_beginning() -> None:
    """Of rank 0, unless the script wants none of its buffers touched."""
    for option, same in ((None, True), (False, False)):
        module = model()
        module[1].running_mean.fill_(dist.get_rank())
        Ours(module, broadcast_buffers=option)
        assert (module[1].running_mean.max().item() == 0.0) is (same or dist.get_rank() == 0)


if __name__ == "__main__":
    run_in_job(globals())
