"""The parameters of an optimizer with their names, checked as Horovod checks them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from deft_horovod.errors import ConfigError, explain, limited

Groups = Sequence[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class NamedParameter:
    """One parameter and the name under which the ranks know it."""

    name: str
    tensor: torch.Tensor


def _check_pairs(named: Sequence[Any]) -> None:
    for item in named:
        match item:
            case (str(), _):
                continue
        raise ConfigError(
            explain(
                "named_parameters must be a sequence of tuples (name, parameter)",
                observed=f"an item of type {type(item).__name__}",
                action="pass model.named_parameters()",
            )
        )
    repeated = [name for name, count in Counter(name for name, _ in named).items() if count > 1]
    if repeated:
        raise ConfigError(
            explain(
                "names in named_parameters must be unique",
                tensor=repeated[0],
                observed=f"duplicate names: {limited(repeated)}",
                action="when several models share the optimizer, prefix the names of each",
            )
        )


def members_of(
    groups: Groups, named_parameters: Iterable[tuple[str, torch.Tensor]] | None
) -> tuple[NamedParameter, ...]:
    """All parameters of the optimizer in its own order, each with its name.

    Raises:
        ConfigError: a name occurs twice, or a parameter has none.
    """
    if named_parameters is None:
        return tuple(
            NamedParameter(f"allreduce.noname.{i}.{j}", tensor)  # Horovod's own words
            for i, group in enumerate(groups)
            for j, tensor in enumerate(group["params"])
        )
    named = list(named_parameters)
    _check_pairs(named)
    names = {id(tensor): name for name, tensor in named}
    unnamed = [
        f"group {i}, parameter {j}, shape {tuple(tensor.shape)}"
        for i, group in enumerate(groups)
        for j, tensor in enumerate(group["params"])
        if id(tensor) not in names
    ]
    if unnamed:
        raise ConfigError(
            explain(
                "some parameters of the optimizer are not in named_parameters",
                observed=f"{len(unnamed)} without a name: {limited(unnamed)}",
                expected="every parameter of the optimizer named once",
                action="pass named_parameters of all models whose parameters the optimizer holds",
            )
        )
    return tuple(
        NamedParameter(names[id(tensor)], tensor) for group in groups for tensor in group["params"]
    )


def dtype_name(tensor: torch.Tensor) -> str:
    """The dtype in the words of plans: 'float32'."""
    return str(tensor.dtype).removeprefix("torch.")
