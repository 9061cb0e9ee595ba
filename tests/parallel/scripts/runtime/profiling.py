"""Measuring steps and links on real ranks: what each of them knows afterwards."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import horovod.torch as stock
import torch
from torch import nn

from deft_horovod.errors import AgreementError
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.links.message_stream import Allowance
from deft_horovod.runtime.links.probe import probe_links
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.measure.profiler import Profiler
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce.stock import StockReducer
from tests.parallel.scripts.twins import main

_DEADLINE_S = 20.0


class Sleep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, forward_s: float, backward_s: float) -> Any:
        ctx.backward_s = backward_s
        ctx.save_for_backward(weight)
        time.sleep(forward_s)
        return x + weight.sum()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (weight,) = ctx.saved_tensors
        time.sleep(ctx.backward_s)
        return gradient, gradient.sum().expand_as(weight), None, None


class Layer(nn.Module):
    """Takes so long forward and backward."""

    def __init__(self, forward_s: float, backward_s: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))
        self.times_s = (forward_s, backward_s)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Sleep.apply(x, self.weight, *self.times_s)


def _agreement() -> Agreement:
    return Agreement(stock.global_process_set, _DEADLINE_S)


@dataclass
class Job:
    """A model in training with Horovod's own calls, as an engine would have it measured."""

    model: nn.Module
    prefix: str
    steps: int = 6

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.members = tuple(NamedParameter(*pair) for pair in self.model.named_parameters())
        self.observer = Observer(self.members, 1, watch_forward=True)
        self.profiler = Profiler(self.observer, self.optimizer, 2, self.steps)
        reduction = Reduction(
            stock.Average, stock.Compression.none, 1.0, False, stock.global_process_set
        )
        self.reducer = StockReducer(self.members, reduction, self.prefix, _DEADLINE_S)

    def step(self, forward: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self.optimizer.zero_grad()
        forward(torch.ones(3)).sum().backward()
        self.profiler.begin_boundary()
        self.reducer.finish()
        self.observer.end_step()
        self.profiler.end_boundary(None)
        self.optimizer.step()

    def run(self, forward: Callable[[torch.Tensor], torch.Tensor] | None = None) -> Any:
        while not self.profiler.complete:
            self.step(forward or self.model)
        profile = self.profiler.profile(_agreement(), self.members)
        self.observer.detach()
        return profile


def case_texts_are_collected_by_rank() -> list[str]:
    mine = "é" * (3 * stock.rank()) + f"rank {stock.rank()}"
    everyone = _agreement().collect(mine)
    assert everyone[stock.rank()] == mine
    return everyone


def case_a_text_is_shared_however_long() -> None:
    agreement = _agreement()
    for length in (0, 1, 300_000):
        text = "é" * length
        assert agreement.share(text if agreement.deciding else None) == text
        everyone = agreement.collect(text if agreement.deciding else "")
        assert everyone == [text, ""]


def case_layers_take_the_time_that_they_take() -> Any:
    """Rank 1 is slower by a quarter."""
    slow = 1.25 if stock.rank() == 1 else 1.0
    times_s = ((0.04, 0.02), (0.02, 0.06), (0.03, 0.04))
    model = nn.Sequential(*(Layer(f * slow, b * slow) for f, b in times_s))
    return Job(model, "sleep").run().to_json()


class Either(nn.Module):
    """Uses its layers in an order that differs between the ranks."""

    def __init__(self, order: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(0.0, 0.01) for _ in range(3))
        self.order = order

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in self.order:
            x = self.layers[i](x)
        return x


def case_another_order_on_another_rank() -> Any:
    order = (0, 1, 2) if stock.rank() == 0 else (2, 1, 0)
    return Job(Either(order), "order", steps=3).run().to_json()


def case_a_module_that_is_called_twice() -> Any:
    shared = Layer(0.02, 0.02)
    model = nn.Sequential(shared, Layer(0.01, 0.01), shared)
    return Job(model, "shared", steps=3).run().to_json()


def case_a_compiled_model() -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    other = copy.deepcopy(model)
    job = Job(model, "compiled", steps=3)
    profile = job.run(torch.compile(model, backend="aot_eager"))
    plain = torch.compile(other, backend="aot_eager")
    optimizer = stock.DistributedOptimizer(
        torch.optim.SGD(other.parameters(), lr=0.01), other.named_parameters()
    )
    for _ in range(2 + job.steps):
        optimizer.zero_grad()
        plain(torch.ones(3)).sum().backward()
        optimizer.step()
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    return profile.to_json()


def case_a_profile_that_differs_is_refused() -> None:
    agreement = _agreement()
    try:
        agreement.require_equal({"profile": f"of rank {stock.rank()}"})
    except AgreementError as error:
        assert "'profile' differs" in str(error)
        return
    raise AssertionError("nobody noticed")


def case_one_link() -> Any:
    limits = Allowance(deadline_s=_DEADLINE_S, largest_bytes=8 << 20)
    began_s = time.monotonic()
    links = probe_links(_agreement(), {"horovod": native.HorovodLink()}, "deft.0.probe", limits)
    took_s = time.monotonic() - began_s
    return {"took_s": took_s, "link": links[0].model_dump(mode="json")}


def case_two_links() -> Any:
    limits = Allowance(budget_s=0.6, deadline_s=_DEADLINE_S, largest_bytes=1 << 20)
    both = {name: native.HorovodLink() for name in ("one", "other")}
    links = probe_links(_agreement(), both, "deft.1.probe", limits)
    return [link.model_dump(mode="json") for link in links]


def case_a_link_again_under_the_same_names() -> Any:
    limits = Allowance(budget_s=0.3, deadline_s=_DEADLINE_S, largest_bytes=1 << 16)
    link = {"horovod": native.HorovodLink()}
    profiles = [probe_links(_agreement(), link, "deft.2.probe", limits) for _ in range(2)]
    return [profile[0].model_dump(mode="json") for profile in profiles]


if __name__ == "__main__":
    main(globals())
