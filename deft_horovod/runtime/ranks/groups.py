"""Explicit groups of gradients, as the `groups` argument of Horovod's optimizer means them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from deft_horovod.errors import ConfigError, explain
from deft_horovod.runtime.ranks.named_parameters import NamedParameter


@dataclass(frozen=True)
class Groups:
    """A number of groups, or lists of tensors; nothing: no groups."""

    count: int = 0
    tensors: tuple[tuple[torch.Tensor, ...], ...] = ()

    @property
    def given(self) -> bool:
        """Whether there are any."""
        return self.count > 0 or len(self.tensors) > 0

    @classmethod
    def parse(cls, groups: object) -> Groups:
        """Reads the argument.

        Raises:
            ConfigError: neither a number nor lists of tensors, or a tensor is in two groups.
        """
        if groups is None:
            return cls()
        if isinstance(groups, int) and not isinstance(groups, bool) and groups > 0:
            return cls(count=groups)
        if not (isinstance(groups, list) and all(isinstance(g, list | tuple) for g in groups)):
            raise ConfigError(
                explain(
                    "groups must be a positive number or a list of lists of torch.Tensor",
                    observed=repr(groups),
                )
            )
        seen: set[int] = set()
        for tensor in (tensor for group in groups for tensor in group):
            if not isinstance(tensor, torch.Tensor):
                raise ConfigError(
                    explain("groups must consist of torch.Tensor", observed=type(tensor).__name__)
                )
            if id(tensor) in seen:
                raise ConfigError(
                    explain(
                        "a parameter can appear only once in groups",
                        observed=f"a tensor of shape {tuple(tensor.shape)} twice",
                    )
                )
            seen.add(id(tensor))
        return cls(tensors=tuple(tuple(group) for group in groups))

    def of(self, members: Sequence[NamedParameter]) -> tuple[tuple[int, ...], ...]:
        """The groups as indices of these members; who is in no group travels alone or is fused."""
        if self.count:
            from horovod.common.util import split_list  # nobody else gives a number of groups

            parts = split_list(list(range(len(members))), min(self.count, len(members)))
            return tuple(tuple(part) for part in parts if part)
        index = {id(member.tensor): i for i, member in enumerate(members)}
        found = (tuple(index[id(t)] for t in group if id(t) in index) for group in self.tensors)
        return tuple(group for group in found if group)
