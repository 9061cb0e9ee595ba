"""Planning on one process: the collectives answer for a lone rank, everything else is real."""

from collections.abc import Mapping, Sequence
from typing import Any

import horovod.torch as stock
import pytest
import torch

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.errors import PlanError
from deft_horovod.runtime.channel import Channel
from deft_horovod.runtime.groups import Groups
from deft_horovod.runtime.members import members_of
from deft_horovod.runtime.observation import Observer
from deft_horovod.runtime.planning import Task, assign, facts_of


class LoneRank:
    """Answers like an agreement of one rank; `heard` replaces what the deciding rank said."""

    deciding = True
    decider = 0

    def __init__(self, heard: str | None = None) -> None:
        self.heard = heard
        self.compared: list[Mapping[str, Any]] = []

    def union(self, flags: Sequence[bool]) -> list[bool]:
        return list(flags)

    def share(self, text: str | None) -> str:
        return self.heard if self.heard is not None else text or ""

    def require_equal(self, facts: Mapping[str, Any]) -> None:
        self.compared.append(facts)


def task(policy: str = "bucket", compression: Any = stock.Compression.none) -> Task:
    channel = Channel(stock.Average, compression, 1.0, False, stock.global_process_set)
    return Task(policies.get(policy), Config.load({"policy": policy}), channel, Groups())


def observed(model: torch.nn.Module, inputs: torch.Tensor) -> Observer:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    members = members_of(optimizer.param_groups, list(model.named_parameters()))
    observer = Observer(members, 1, watch_forward=False)
    model(inputs).sum().backward()
    observer.end_step()
    return observer


def test_the_plan_follows_the_order_in_which_gradients_came() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    observer = observed(model, torch.randn(2, 4))
    assignment = assign(LoneRank(), task("wfbp"), observer, None)  # type: ignore[arg-type]
    assert assignment.plan is not None
    assert [m.name for m in assignment.planned] == [n for n, _ in model.named_parameters()]
    order = [assignment.plan.generations[t.generation].bucket for t in assignment.plan.tasks]
    last_layer = {i for i, m in enumerate(assignment.planned) if m.name.startswith("1.")}
    sent_first = order[: len(last_layer)]
    slots = assignment.plan.slots
    carried = {
        next(i for i, s in enumerate(slots) if s.begin == assignment.plan.buckets[b].begin)
        for b in sent_first
    }
    assert carried == last_layer


def test_sparse_gradients_go_the_stock_way() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(5, 3, sparse=True), torch.nn.Linear(3, 2))
    observer = observed(model, torch.tensor([1, 2]))
    assignment = assign(LoneRank(), task(), observer, None)  # type: ignore[arg-type]
    assert [m.name for m in assignment.stock] == ["0.weight"]
    assert {m.name for m in assignment.planned} == {"1.weight", "1.bias"}


def test_a_foreign_compression_and_the_stock_policy_leave_nothing_to_plan() -> None:
    class Foreign(stock.Compression.none):  # type: ignore[misc]
        """Not one of Horovod's two."""

    model = torch.nn.Linear(3, 2)
    observer = observed(model, torch.randn(1, 3))
    for chosen in (task(compression=Foreign), task("stock")):
        assignment = assign(LoneRank(), chosen, observer, None)  # type: ignore[arg-type]
        assert assignment.plan is None
        assert len(assignment.stock) == 2


def test_all_ranks_compare_the_hash_of_what_they_understood() -> None:
    observer = observed(torch.nn.Linear(3, 2), torch.randn(1, 3))
    agreement = LoneRank()
    assignment = assign(agreement, task(), observer, None)  # type: ignore[arg-type]
    assert assignment.plan is not None
    assert agreement.compared == [{"plan": assignment.plan.hash()}]


def test_a_plan_that_could_not_be_made_stops_every_rank() -> None:
    observer = observed(torch.nn.Linear(3, 2), torch.randn(1, 3))
    agreement = LoneRank(heard="")
    with pytest.raises(PlanError, match="look at rank 0"):
        assign(agreement, task(), observer, None)  # type: ignore[arg-type]


def test_facts_name_everything_that_makes_messages_differ() -> None:
    model = torch.nn.Linear(3, 2).double()
    model.bias.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    members = members_of(optimizer.param_groups, list(model.named_parameters()))
    assert facts_of(members) == [
        {"name": "weight", "shape": [2, 3], "dtype": "float64", "device": "cpu", "trains": True},
        {"name": "bias", "shape": [2], "dtype": "float64", "device": "cpu", "trains": False},
    ]
