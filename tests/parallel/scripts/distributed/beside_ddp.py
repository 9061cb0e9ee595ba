"""Trains in a job of torchrun, beside torch's DistributedDataParallel."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from deft_horovod.distributed import DistributedOptimizer
from tests.parallel.scripts.distributed.job import run_in_job

STEPS = 24


def model() -> torch.nn.Module:
    torch.manual_seed(5)
    return torch.nn.Sequential(
        torch.nn.Linear(12, 96),
        torch.nn.BatchNorm1d(96),
        torch.nn.Tanh(),
        torch.nn.Linear(96, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 4),
    )


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1000 * step + dist.get_rank())
    inputs = torch.randn(8, 12, generator=generator)
    return inputs, torch.randint(4, (8,), generator=generator)


def adamw(module: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(module.parameters(), lr=0.01)


def descent(module: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), lr=0.05)


def momentum(module: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)


def loss_of(module: torch.nn.Module, step: int) -> torch.Tensor:
    inputs, labels = batch(step)
    return torch.nn.functional.cross_entropy(module(inputs), labels)


def train(
    module: torch.nn.Module, optimizer: torch.optim.Optimizer, first: int, steps: int
) -> None:
    for step in range(first, first + steps):
        optimizer.zero_grad()
        loss_of(module, step).backward()
        optimizer.step()


def bits(tensors: Iterable[torch.Tensor]) -> str:
    return hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in tensors)).hexdigest()


def ours(make: Any, **options: Any) -> tuple[torch.nn.Module, Any]:
    module = model()
    return module, DistributedOptimizer(make(module), module, **options)


def ddp(make: Any) -> tuple[Any, torch.optim.Optimizer]:
    module = DistributedDataParallel(model())
    return module, make(module)


def everything(module: torch.nn.Module) -> str:
    """Buffers, too; those of batch norms are each rank's own after a forward, also with DDP."""
    return bits([*module.parameters(), *module.buffers()])


def require_equal_on_all_ranks(module: torch.nn.Module) -> None:
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, bits(module.parameters()))
    assert len(set(everyone)) == 1


def compare(policy: str, make: Any, **options: Any) -> None:
    module, optimizer = ours(make, policy=policy, **options)
    other, stock = ddp(make)
    train(module, optimizer, 0, STEPS)
    train(other, stock, 0, STEPS)
    optimizer.flush()
    require_equal_on_all_ranks(module)
    # With two ranks there is one order in which a sum can be formed.
    if dist.get_world_size() == 2:
        assert everything(module) == everything(other.module)


def case_exact(policy: str) -> None:
    compare(policy, adamw)
    compare(policy, momentum)


def case_auto() -> None:
    compare("auto", adamw, config={"accuracy": "exact"})


def case_rivals() -> None:
    for policy in ("ddp", "mgwfbp", "p3", "bytescheduler", "usbyte", "dcredit"):
        compare(policy, momentum)


def trained(make: Any, **options: Any) -> torch.nn.Module:
    module, optimizer = ours(make, **options)
    train(module, optimizer, 0, STEPS)
    optimizer.flush()
    require_equal_on_all_ranks(module)
    return module


def case_layers_that_freeze_again_and_again() -> None:
    """There is no time to measure each time, and the baseline needs no profile."""
    module, optimizer = ours(momentum)
    train(module, optimizer, 0, STEPS)
    first = [*module.parameters()][:2]
    before = bits(first)
    for number in range(8):
        for parameter in first:
            parameter.requires_grad_(bool(number % 2))
        train(module, optimizer, STEPS + 4 * number, 4)
    stats = optimizer.stats()
    assert (stats["phase"], stats["running"]) == ("settled", "ddp"), stats
    assert bits(first) != before
    optimizer.flush()
    require_equal_on_all_ranks(module)


def case_late() -> None:
    for policy in ("deft", "sapipe", "covap"):
        module = trained(momentum, policy=policy)
        assert all(torch.isfinite(p).all() for p in module.parameters())


def case_formats() -> None:
    for accuracy in ("equal", "fast"):
        trained(adamw, policy="least_stale", config={"accuracy": accuracy})


def case_half() -> None:
    module = trained(momentum, policy="bucket", compression="fp16")
    exact = trained(momentum, policy="bucket")
    pairs = zip(module.parameters(), exact.parameters(), strict=True)
    assert 0 < max(float((a - b).detach().abs().max()) for a, b in pairs) < 0.01


def accumulate(module: Any, optimizer: Any, quiet: Any) -> None:
    for step in range(STEPS):
        optimizer.zero_grad()
        with quiet():
            loss_of(module, 2 * step).backward()
        loss_of(module, 2 * step + 1).backward()
        optimizer.step()


def case_no_sync(policy: str) -> None:
    module, optimizer = ours(adamw, policy=policy, broadcast_buffers=False)
    accumulate(module, optimizer, optimizer.no_sync)
    other = DistributedDataParallel(model(), broadcast_buffers=False)
    accumulate(other, adamw(other), other.no_sync)
    require_equal_on_all_ranks(module)
    if dist.get_world_size() == 2:
        pairs = zip(module.parameters(), other.parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


def case_unlike_models_become_equal() -> None:
    torch.manual_seed(dist.get_rank())
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    module[1].running_mean.fill_(float(dist.get_rank() + 1))
    DistributedOptimizer(momentum(module), module)
    require_equal_on_all_ranks(module)
    assert module[1].running_mean.tolist() == [1.0] * 3


def case_sparse_gradients() -> None:
    torch.manual_seed(1)
    table = torch.nn.Embedding(20, 4, sparse=True)
    dense = copy.deepcopy(table)
    optimizer = DistributedOptimizer(torch.optim.SGD(table.parameters(), lr=0.5), table)
    for step in range(4):
        optimizer.zero_grad()
        rows = torch.tensor([step, 5 + dist.get_rank(), 7][: 2 + dist.get_rank()])
        table(rows).sum().backward()
        optimizer.step()
        gradient = torch.zeros(20, 4)
        for rank in range(dist.get_world_size()):
            for row in [step, 5 + rank, 7][: 2 + rank]:
                gradient[row] += 1.0 / dist.get_world_size()
        with torch.no_grad():
            dense.weight -= 0.5 * gradient
    require_equal_on_all_ranks(table)
    assert torch.allclose(table.weight, dense.weight)


class Mixed(torch.nn.Module):
    """Sparse gradients, which no plan carries, beside dense ones."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.table = torch.nn.Embedding(20, 16, sparse=True)
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Linear(64, 2))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layers(self.table(rows))


def case_sparse_beside_plans() -> None:
    """Ranks come to their boundaries at different times, with messages in flight."""
    for policy in ("bucket", "deft", "least_stale"):
        module = Mixed()
        optimizer = DistributedOptimizer(
            torch.optim.SGD(module.parameters(), lr=0.05), module, policy=policy
        )
        for step in range(STEPS):
            optimizer.zero_grad()
            rows = torch.randint(20, (3,), generator=torch.Generator().manual_seed(step))
            module((rows + dist.get_rank()) % 20).square().sum().backward()
            time.sleep(0.01 * ((step + dist.get_rank()) % 3))
            optimizer.step()
        optimizer.flush()
        require_equal_on_all_ranks(module)


def case_two_optimizers() -> None:
    """As in a GAN; each has a link of its own."""
    left, first = ours(adamw, policy="bucket")
    right, second = ours(momentum, policy="bucket")
    for step in range(6):
        order = (0, 1) if dist.get_rank() == 0 else (1, 0)
        pairs = ((left, first), (right, second))
        for optimizer in (first, second):
            optimizer.zero_grad()
        for index in order if step else (0, 1):
            loss_of(pairs[index][0], step).backward()
        first.step()
        second.step()
    require_equal_on_all_ranks(left)
    require_equal_on_all_ranks(right)


def case_state_goes_on() -> None:
    module, optimizer = ours(adamw, policy="bucket")
    train(module, optimizer, 0, 6)
    kept = copy.deepcopy((module.state_dict(), optimizer.state_dict()))
    train(module, optimizer, 6, 6)
    again, other = ours(adamw, policy="bucket")
    again.load_state_dict(kept[0])
    other.load_state_dict(kept[1])
    train(again, other, 6, 6)
    assert everything(again) == everything(module)


if __name__ == "__main__":
    run_in_job(globals())
