"""``DistributedOptimizer``: Horovod's signature and two arguments of ours."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from deft_horovod.config import Config
from deft_horovod.errors import NotSupportedError, explain
from deft_horovod.peers import stock
from deft_horovod.runtime import wrapper
from deft_horovod.runtime.decide.first_brief import first_brief
from deft_horovod.runtime.ranks.groups import Groups
from deft_horovod.runtime.ranks.named_parameters import members_of
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.torch.surface import with_our_surface


def DistributedOptimizer(  # noqa: N802  # rule: stock signature
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    compression: Any = stock.Compression.none,
    backward_passes_per_step: int = 1,
    op: Any = stock.Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    sparse_as_dense: bool = False,
    process_set: Any = stock.global_process_set,
    *,
    policy: str | None = None,
    config: Config | Mapping[str, Any] | None = None,
) -> torch.optim.Optimizer:
    """Wraps an optimizer so that gradients are averaged over all ranks before it updates.

    The arguments up to ``process_set`` mean what they mean for Horovod's own.

    Args:
        policy: which scheduler plans the messages; the default decides by itself.
        config: further options, see docs/reference/config.md.

    Raises:
        ConfigError: an argument or option is unknown or out of range.
        NotSupportedError: arguments that exclude each other.
    """
    settings = Config.load(config, policy=policy)
    if num_groups:
        warnings.warn("num_groups is deprecated, use groups", DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    arguments = {
        "named_parameters": None if named_parameters is None else list(named_parameters),
        "compression": compression,
        "backward_passes_per_step": backward_passes_per_step,
        "op": op,
        "gradient_predivide_factor": gradient_predivide_factor,
        "groups": groups,
        "sparse_as_dense": sparse_as_dense,
        "process_set": process_set,
    }
    if settings.disable:
        return with_our_surface(_stock_optimizer(optimizer, **arguments))
    _check(op, gradient_predivide_factor, backward_passes_per_step, process_set)
    members = members_of(optimizer.param_groups, arguments["named_parameters"])
    _require_init()  # as Horovod, after what is wrong with the arguments
    reduction = Reduction(op, compression, gradient_predivide_factor, sparse_as_dense, process_set)
    brief = first_brief(settings, reduction, Groups.parse(groups), optimizer)
    adasum = op == stock.Adasum
    if adasum and stock.size() > 1:
        # Adasum reduces updates, not gradients: Horovod's optimizer does all of it.
        optimizer = _stock_optimizer(optimizer, **arguments)
    # A lone elastic worker may get peers later, so it needs its hooks from the start.
    alone = stock.size() == 1 and not Config.elastic()
    active = not adasum and not alone and process_set.included()
    return wrapper.DistributedOptimizer(optimizer, members, brief, backward_passes_per_step, active)


def _stock_optimizer(optimizer: torch.optim.Optimizer, **arguments: Any) -> torch.optim.Optimizer:
    made: torch.optim.Optimizer = stock.DistributedOptimizer(optimizer, **arguments)
    return made


def _require_init() -> None:
    if not stock.is_initialized():
        raise NotSupportedError(
            explain(
                "Horovod is not initialised",
                expected="hvd.init() before DistributedOptimizer",
                action="call hvd.init() at the beginning of the script",
            )
        )


def _check(op: Any, predivide: float, passes: int, process_set: Any) -> None:
    if predivide != 1.0 and op != stock.Average:
        raise NotSupportedError(
            explain(
                "gradient_predivide_factor needs op=hvd.Average",
                observed=f"gradient_predivide_factor={predivide}",
                action="leave it at 1.0 or use op=hvd.Average",
            )
        )
    wrapper.require_passes(passes)
    if op == stock.Adasum and process_set != stock.global_process_set:
        raise NotSupportedError(
            explain(
                "Adasum works on all ranks only",
                observed=f"process_set={process_set}",
                action="leave process_set out, or use op=hvd.Average",
            )
        )
