"""What rank programs share that watch failures: one small training, and errors as data."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import horovod.torch as stock
import torch
from torch import nn

import deft_horovod.torch as hvd

SMALL = {"bucket_bytes": 1024, "first_bucket_bytes": 1024, "partition_bytes": 1024}


def network(*widths: int, seed: int = 0) -> nn.Sequential:
    """Linear layers, the same on all ranks."""
    torch.manual_seed(seed)
    pairs = itertools.pairwise(widths)
    return nn.Sequential(*(nn.Linear(a, b) for a, b in pairs))


def wrapped(model: nn.Module, **options: Any) -> Any:
    """SGD under ours; messages are small, so that there are several."""
    made = {"named_parameters": model.named_parameters(), "config": SMALL, **options}
    return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), **made)


def train(model: nn.Module, optimizer: Any, steps: int = 1) -> None:
    width = next(model.parameters()).shape[1]
    for _ in range(steps):
        optimizer.zero_grad()
        inputs = torch.full((2, width), 1.0 + hvd.rank(), dtype=next(model.parameters()).dtype)
        model(inputs).pow(2).mean().backward()
        optimizer.step()


def caught(action: Callable[[], Any]) -> dict[str, Any]:
    """The error that an action ends with, and after how long."""
    began_s = time.monotonic()
    found: dict[str, Any] = {"type": None, "message": "", "kinds": []}
    try:
        action()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  reported to the test
        found["type"] = type(error).__name__
        found["kinds"] = [kind.__name__ for kind in type(error).__mro__]
        found["message"] = str(error)
    found["seconds"] = time.monotonic() - began_s
    return found


def everybody_equal(model: nn.Module) -> bool:
    """Whether all ranks hold the same parameters."""
    flat = torch.cat([p.detach().flatten().double() for p in model.parameters()])
    everyone = stock.allgather(flat.unsqueeze(0), name="test.everyone")
    return bool((everyone == everyone[0]).all())
