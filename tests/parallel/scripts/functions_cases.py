"""join(), and the broadcast of an optimizer's state."""

from __future__ import annotations

import horovod.torch as stock
import torch
from torch import nn
from training import CLASSES, WIDTH, Data, assert_equal, equal_on_all_ranks, loss_of, mlp
from twins import Twins, main, ours_of

import deft_horovod.torch as hvd


def _uneven(policy: str, epochs: tuple[tuple[int, int], ...]) -> None:
    twins = Twins(policy)
    for steps in epochs:
        data = Data()
        batches = [data.next() for _ in range(steps[hvd.rank()])]
        for (model, optimizer), join in zip(twins, (hvd.join, stock.join), strict=True):
            for batch in batches:
                optimizer.zero_grad()
                loss_of(model, batch).backward()
                optimizer.step()
            join()
            if optimizer is twins.optimizer:
                optimizer.flush()
            hvd.broadcast_parameters(dict(model.named_parameters()), 0)
    ours, theirs = list(twins.model.parameters()), list(twins.reference.parameters())
    assert_equal(ours, theirs, "after uneven epochs")
    assert equal_on_all_ranks(ours)


def case_uneven_data(policy: str) -> None:
    _uneven(policy, ((5, 3), (2, 4), (3, 3)))


def case_a_rank_without_any_data(policy: str) -> None:
    """It joins before the ranks could agree on a plan."""
    _uneven(policy, ((3, 0), (4, 4)))


def case_only_one_rank_has_a_state(policy: str) -> None:
    torch.manual_seed(hvd.rank())
    model = nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, CLASSES))
    optimizer = ours_of(model, policy, lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.5))
    if hvd.rank() == 0:
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.inner.step()
        optimizer.inner.zero_grad()
    hvd.broadcast_parameters(model.state_dict(), 0)
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert equal_on_all_ranks(model.parameters()), "the empty step moved parameters"
    data = Data()
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model, data.next()).backward()
        optimizer.step()
    optimizer.flush()
    assert equal_on_all_ranks(model.parameters())


def case_synchronized_batch_norm_is_horovods() -> None:
    """It works on GPUs only: on a CPU all there is to see is that it is Horovod's own."""
    assert hvd.SyncBatchNorm is stock.SyncBatchNorm


def case_parameters_reach_every_rank() -> None:
    torch.manual_seed(hvd.rank())
    model = mlp()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(hvd.rank())
    hvd.broadcast_parameters(model.state_dict(), 0)
    assert equal_on_all_ranks(model.parameters())


if __name__ == "__main__":
    main(globals())
