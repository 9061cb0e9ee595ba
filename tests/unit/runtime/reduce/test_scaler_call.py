"""A GradScaler that walks the groups is told from everybody else who reads them."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

from deft_horovod.runtime.reduce.scaler_call import ScalerCall, scaler_call


class Watched(torch.optim.SGD):
    """Notes who reads its groups."""

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        self.__dict__.setdefault("calls", []).append(scaler_call(sys._getframe(1)))
        return self.__dict__["groups"]

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        self.__dict__["groups"] = groups

    def seen(self) -> list[ScalerCall]:
        calls, self.__dict__["calls"] = self.__dict__["calls"], []
        return [call for call in calls if call is not None]


def make() -> tuple[Watched, torch.amp.GradScaler]:
    layer = nn.Linear(2, 2)
    optimizer = Watched(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(layer(torch.ones(1, 2)).sum()).backward()
    return optimizer, scaler


def test_a_script_that_unscales():
    optimizer, scaler = make()
    scaler.unscale_(optimizer)
    assert optimizer.seen() == [ScalerCall(scaler, unscales=True)]
    scaler.step(optimizer)
    assert optimizer.seen() == []


def test_a_scaler_that_only_looks():
    optimizer, scaler = make()
    optimizer._step_supports_amp_scaling = True
    optimizer.step = lambda: None
    scaler.step(optimizer)
    assert optimizer.seen() == [ScalerCall(scaler, unscales=False)]


def test_nobody_else_counts():
    optimizer, _ = make()

    def _unscale_grads_(self: object) -> object:
        return optimizer.param_groups

    def unscale_() -> object:
        return optimizer.param_groups

    assert _unscale_grads_(object())
    assert unscale_()
    torch.optim.lr_scheduler.StepLR(optimizer, 1).step()
    optimizer.zero_grad()
    assert optimizer.seen() == []
