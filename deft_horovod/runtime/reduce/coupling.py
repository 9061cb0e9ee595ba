"""Whether an optimizer treats each parameter on its own.

Gates and late updates run the user's optimizer on a part of its parameters at a time. Where its
update couples them (a global norm, a counter of calls), that changes the result. torch's own
optimizers are known. Any other is tried on a small copy: some steps of all parameters at once
against the same steps in two parts have to agree bit for bit.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import nn

from deft_horovod.errors import NotSupportedError, explain
from deft_horovod.runtime.reduce.updates import bare_step, options_of, update_only

_INDEPENDENT: Final = tuple(
    getattr(torch.optim, name)
    for name in (
        *("SGD", "ASGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta"),
        *("RMSprop", "Rprop", "SparseAdam", "Adafactor", "Muon"),
    )
    if hasattr(torch.optim, name)  # some are newer than the oldest torch that is supported
)
_SIDE: Final = 4  # elements of a small parameter along each dimension, at most
# Some optimizers clip, others act from a second step on.
_GRADIENT_SIZES: Final = (1.0, 1000.0, 0.001)
_NOT_COPIED: Final = ("state", "param_groups", "step")


def is_partial(optimizer: torch.optim.Optimizer) -> bool:
    """Whether an update falls into independent parameters."""
    if type(optimizer) in _INDEPENDENT:
        return True
    if isinstance(optimizer, torch.optim.LBFGS):
        return False
    try:
        with torch.random.fork_rng():
            whole, parts = (_trained(optimizer, in_parts=split) for split in (False, True))
    except Exception:  # noqa: BLE001  an optimizer that cannot be tried is not known to be safe
        return False
    return _equal(whole, parts)


def require_partial(optimizer: torch.optim.Optimizer, policy: str) -> None:
    """Refuses optimizers whose update does not fall into independent parameters."""
    if not is_partial(optimizer):
        raise NotSupportedError(
            explain(
                f"policy '{policy}' updates parameters one bucket at a time",
                observed=f"{type(optimizer).__name__}, which does not treat each parameter on its "
                "own: a step of all of them and the same step in two parts differ",
                expected="an optimizer that treats each parameter on its own",
                action="use policy 'bucket' or 'stock' with it; 'auto' does so by itself",
            )
        )


def _trained(optimizer: torch.optim.Optimizer, *, in_parts: bool) -> torch.optim.Optimizer:
    """A small copy after some steps."""
    torch.manual_seed(0)
    small = _small_copy(optimizer)
    tensors = [p for group in small.param_groups for p in group["params"]]
    numbers = torch.Generator().manual_seed(1)
    for size in _GRADIENT_SIZES:
        for tensor in tensors:
            tensor.grad = _random(tensor, numbers) * size
        if in_parts:
            for part in (tensors[::2], tensors[1::2]):
                update_only(small, part, options_of(small))
        else:
            bare_step(small)
    return small


def _small_copy(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The same options and attributes, no state and small parameters."""
    numbers = torch.Generator().manual_seed(2)
    memo: dict[int, Any] = {}
    for group in optimizer.param_groups:
        for tensor in group["params"]:
            shape = [min(length, _SIDE) for length in tensor.shape]
            like = tensor.detach().new_empty(shape)
            memo[id(tensor)] = nn.Parameter(_random(like, numbers))
    small: torch.optim.Optimizer = object.__new__(type(optimizer))
    for name, value in vars(optimizer).items():
        if name not in _NOT_COPIED:
            hooks = name.startswith("_optimizer_")  # of the user's, who does not train here
            small.__dict__[name] = {} if hooks else copy.deepcopy(value, memo)
    small.state = defaultdict(dict)
    small.param_groups = [copy.deepcopy(group, memo) for group in optimizer.param_groups]
    return small


def _random(like: torch.Tensor, numbers: torch.Generator) -> torch.Tensor:
    values = torch.randn(like.shape, generator=numbers, dtype=torch.float32, device="cpu")
    return values.to(device=like.device, dtype=like.dtype)


def _equal(whole: torch.optim.Optimizer, parts: torch.optim.Optimizer) -> bool:
    """Parameters, options and plain attributes, which some optimizers count in."""
    pairs = zip(whole.param_groups, parts.param_groups, strict=True)
    return _same_values(_numbers(vars(whole)), _numbers(vars(parts))) and all(
        _same_values(a, b) for a, b in pairs
    )


def _numbers(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in attributes.items() if isinstance(v, int | float | torch.Tensor)}


def _same_values(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a.detach(), b.detach())
    if isinstance(a, list | tuple) and isinstance(b, Sequence):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
