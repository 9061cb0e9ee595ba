"""``DistributedOptimizer``: averages gradients over the ranks of a job of torch.distributed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

import torch
from torch.nn.parallel import DistributedDataParallel

from deft_horovod.config import Config
from deft_horovod.distributed.replicas import broadcast_before_forward, make_equal
from deft_horovod.errors import ConfigError, NotSupportedError, explain
from deft_horovod.peers import stock
from deft_horovod.runtime import wrapper
from deft_horovod.runtime.decide.first_brief import first_brief
from deft_horovod.runtime.ranks.groups import Groups
from deft_horovod.runtime.ranks.named_parameters import members_of
from deft_horovod.runtime.ranks.reduction import Reduction

_COMPRESSIONS: Final[Mapping[str, Any]] = MappingProxyType(
    {"none": stock.Compression.none, "fp16": stock.Compression.fp16}
)


def average(compression: Literal["none", "fp16"]) -> Reduction:
    """What becomes of gradients: their average over all ranks, sent in full or in 16 bits."""
    return Reduction(
        stock.Average, _COMPRESSIONS[compression], 1.0, False, stock.global_process_set
    )


def DistributedOptimizer(  # noqa: N802  # as Horovod's
    optimizer: torch.optim.Optimizer,
    model: torch.nn.Module,
    *,
    compression: Literal["none", "fp16"] = "none",
    backward_passes_per_step: int = 1,
    broadcast_buffers: bool = True,
    policy: str | None = None,
    config: Config | Mapping[str, Any] | None = None,
) -> torch.optim.Optimizer:
    """Wraps an optimizer so that gradients are averaged over all ranks before it updates.

    Parameters and buffers of the model become those of rank 0. Leave out
    ``DistributedDataParallel``.

    Args:
        model: what the optimizer trains, without a wrapper.
        compression: "fp16": gradients travel in 16 bits, and nothing coarser.
        backward_passes_per_step: how many add up before gradients travel; or use `no_sync`.
        broadcast_buffers: whether each forward in training begins with the buffers of rank 0.
        policy: which scheduler plans the messages; the default decides by itself.
        config: further options, see docs/reference/config.md.

    Raises:
        ConfigError: an argument or option is unknown or out of range.
        NotSupportedError: torch.distributed is not initialised, or a combination is refused.
    """
    settings = Config.load(config, policy=policy)
    _check(model, compression, backward_passes_per_step, settings)
    members = members_of(optimizer.param_groups, list(model.named_parameters()))
    make_equal(model)
    if broadcast_buffers:
        broadcast_before_forward(model)
    brief = first_brief(settings, average(compression), Groups.parse(None), optimizer)
    active = stock.size() > 1
    return wrapper.DistributedOptimizer(optimizer, members, brief, backward_passes_per_step, active)


def _check(model: torch.nn.Module, compression: str, passes: int, settings: Config) -> None:
    if isinstance(model, DistributedDataParallel):
        raise ConfigError(
            explain(
                "the model is wrapped in DistributedDataParallel, which would average first",
                action="pass the model itself, and train with it",
            )
        )
    if compression not in _COMPRESSIONS:
        raise ConfigError(
            explain(
                "compression is unknown",
                observed=repr(compression),
                expected=" or ".join(repr(name) for name in _COMPRESSIONS),
            )
        )
    wrapper.require_passes(passes)
    if settings.disable:
        raise NotSupportedError(
            explain(
                "DEFT_DISABLE: there is no other optimizer in a job of torch.distributed",
                action="unset it; policy='stock' sends each gradient as it comes",
            )
        )
    if not stock.is_initialized():
        raise NotSupportedError(
            explain(
                "torch.distributed is not initialised",
                expected="torch.distributed.init_process_group() before DistributedOptimizer",
                action="call it at the beginning of the script, and start that with torchrun",
            )
        )
