"""Uneven data: ranks that have finished wait in hvd.join() while the others go on."""

from __future__ import annotations

from typing import Any

import horovod.torch as stock
from torch import nn

import deft_horovod.torch as hvd
from tests.parallel.scripts.training import Data, assert_equal_models, equal_on_all_ranks, loss_of
from tests.parallel.scripts.twins import Twins, main


def _epoch(model: nn.Module, optimizer: Any, batches: list[Any], passes: int = 1) -> None:
    for begin in range(0, len(batches), passes):
        optimizer.zero_grad()
        for batch in batches[begin : begin + passes]:
            loss_of(model, batch).backward()
        optimizer.step()


def _epochs(
    policy: str, batches_by_epoch: list[tuple[int, int]], passes: int = 1, **options: Any
) -> None:
    """An epoch is: as many batches as this rank has, then join(); parameters from the last."""
    twins, data = Twins(policy, backward_passes_per_step=passes, **options), Data()
    for epoch, counts in enumerate(batches_by_epoch):
        batches = [data.next() for _ in range(counts[stock.rank()])]
        last = []
        for (model, optimizer), join in zip(twins, (hvd.join, stock.join), strict=True):
            _epoch(model, optimizer, batches, passes)
            last.append(join())
        assert last[0] == last[1] or counts[0] == counts[1], f"epoch {epoch}: {last}"
        assert_equal_models(twins.model, twins.reference, f"rank {stock.rank()}, epoch {epoch}")
        for model, _ in twins:
            stock.broadcast_parameters(model.state_dict(), root_rank=last[0])
        assert equal_on_all_ranks(twins.model.parameters())


def case_one_rank_has_fewer_batches(policy: str) -> None:
    _epochs(policy, [(5, 3), (3, 6), (4, 4)])


def case_one_rank_has_no_batch_at_first(policy: str) -> None:
    """No plan can be agreed on with a rank in join(); it is made when all are there."""
    _epochs(policy, [(3, 0), (4, 4), (0, 2), (3, 3)])


def case_a_plan_becomes_due_while_a_rank_waits(policy: str) -> None:
    """priority plans anew after three steps; here one rank is in join() by then."""
    _epochs(policy, [(9, 2), (6, 6), (2, 8)])


def case_accumulation_over_uneven_data(policy: str) -> None:
    _epochs(policy, [(7, 4), (2, 5)], passes=2)


def case_joining_without_training_between(policy: str) -> None:
    _epochs(policy, [(0, 0), (2, 1), (0, 0), (2, 2)])


def case_where_stock_is_kept_all_ask_at_the_same_boundary() -> None:
    """Without a plan there are no headers: all ranks ask after so many steps."""
    kept = {"min_gain": 1.0, "drift": 100.0, "drift_steps": 5, "trial_steps": 1, "trial_rounds": 1}
    _epochs("auto", [(12, 12), (4, 2), (3, 6), (7, 7)], config=kept)


if __name__ == "__main__":
    main(globals())
