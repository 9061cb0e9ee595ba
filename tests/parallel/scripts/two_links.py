"""A plan of two links, made by hand, at work on a model through the C++ session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import horovod.torch as stock
import torch
from torch import nn

from deft_horovod import policies
from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.plan import Link, Plan
from deft_horovod.policies import Request
from deft_horovod.profile import Profile
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.ranks.waits import Waiter
from tests.parallel.scripts.device import DEVICE

NAMES = ("horovod", "second")


def reduction_of(op: Any = None, predivide: float = 1.0, process_set: Any = None) -> Reduction:
    return Reduction(
        stock.Average if op is None else op,
        stock.Compression.none,
        predivide,
        False,
        stock.global_process_set if process_set is None else process_set,
    )


def plan_of(model: nn.Module, names: Sequence[str] = NAMES) -> Plan:
    """Small buckets, which take turns on the links."""
    parameters = []
    for name, tensor in model.named_parameters():
        dtype = str(tensor.dtype).removeprefix("torch.")
        parameters.append(Parameter(name, tensor.numel(), dtype, dtype, DEVICE.type))
    sizes = {"policy": "bucket", "bucket_bytes": 2048, "first_bucket_bytes": 1024}
    request = Request(
        parameters=tuple(parameters),
        profile=Profile.assumed(len(parameters)),
        config=Config.load(sizes, environ={}),
    )
    plan = policies.get("bucket").plan(request)
    tasks = [
        task.model_copy(update={"link": number % len(names)})
        for number, task in enumerate(plan.tasks)
    ]
    links = [Link(name=name) for name in names]
    changed = plan.model_copy(update={"links": tuple(links), "tasks": tuple(tasks)})
    return Plan.model_validate(changed.model_dump())


class Trainer:
    """Gradients of a model by such a plan; with one link, all of them on it."""

    def __init__(
        self, model: nn.Module, links: Sequence[Any], prefix: str, deadline_s: float = 20.0
    ) -> None:
        names, parameters = zip(*model.named_parameters(), strict=True)
        plan = plan_of(model, NAMES[-len(links) :])
        self.messages = [sum(t.link == i for t in plan.tasks) for i in range(len(links))]
        size = stock.size()
        self.session = native.Session(
            native.Plan(plan.model_dump()), parameters, links, prefix, stock.rank(), size
        )
        self._collector = native.Collector(parameters, names, 1)
        self._collector.set_sink(self.session, range(len(parameters)))
        self._waiter = Waiter(self.session, names, deadline_s)

    def backward(self, loss: torch.Tensor) -> None:
        """Averages are in ``p.grad`` when it returns."""
        loss.backward()
        self.session.close_step()
        dues = self.session.due()
        self._waiter.wait(dues)
        self.session.install(dues)
        self.session.release(dues)
        self.session.end_step()
        self._collector.reset()
