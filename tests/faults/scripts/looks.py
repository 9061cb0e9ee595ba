"""What scripts look at in odd places; none of it has an effect with a stock optimizer."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import nn


def look(kind: str, model: nn.Module, optimizer: Any, schedule: Any) -> None:
    """One look; `kind` is one of draw.READS."""
    if kind == "read param_groups":
        _require(all(group["params"] for group in optimizer.param_groups))
    elif kind == "read state":
        _require(len(optimizer.state) >= 0)
        [dict(optimizer.state.get(p, {})) for p in model.parameters()]
    elif kind == "read rate in a thread":
        _in_a_thread(lambda: [float(group["lr"]) for group in optimizer.param_groups])
    elif kind == "read repr and stats":
        _require(bool(repr(optimizer)))
        optimizer.stats()
        _require(bool(optimizer.defaults))
    elif kind == "read state_dict":
        _require("param_groups" in optimizer.state_dict())
    elif kind == "read gradients":
        [float(p.grad.norm()) for p in model.parameters() if p.grad is not None]
    elif kind == "read parameters":
        with torch.no_grad():
            [float(p.norm()) for p in model.parameters()]
    elif kind == "read rates of the schedule":
        _require(schedule is None or bool(schedule.get_last_lr()))
    else:
        raise ValueError(kind)


def _require(fine: bool) -> None:
    if not fine:
        raise AssertionError("a look at the optimizer shows nothing")


def _in_a_thread(action: Any) -> None:
    """As a logger does; it has to come back."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(action()), daemon=True)
    thread.start()
    thread.join(20)
    if not found:
        raise AssertionError("a thread that reads the learning rate did not come back")
