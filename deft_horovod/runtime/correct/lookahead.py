"""Lookahead: parameters as they will be once what is in flight has been applied, and back again.

After SAPipe's weight prediction (Chen et al., NeurIPS 2022; its published code takes one more step
of the optimizer before forward and restores the weights after backward). The steps are those of the
user's own optimizer, on copies of its state, so that they hold for any update rule.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from deft_horovod.runtime.reduce.updates import (
    Options,
    in_one_pass,
    own_gradients_kept,
    update_only,
)

Guesses = Mapping[torch.Tensor, torch.Tensor]  # of the gradient of a parameter


class Lookahead:
    """At most one at a time: :meth:`cast` before forward, :meth:`lift` once backward is done."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        self._inner = inner
        self._kept: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._versions: list[int] = []  # of the same tensors, as they were cast

    @property
    def is_cast(self) -> bool:
        """Whether parameters hold predicted values."""
        return bool(self._kept)

    def cast(self, updates: Sequence[tuple[Guesses, Options]]) -> None:
        """Moves parameters as these updates, one after the other, would move them."""
        tensors = list(dict.fromkeys(tensor for guesses, _ in updates for tensor in guesses))
        if not tensors:
            return
        self.lift()
        self._kept = [(tensor, tensor.detach().clone()) for tensor in tensors]
        true_state = {tensor: self._borrow_state(tensor) for tensor in tensors}
        try:
            with own_gradients_kept(tensors):
                for guesses, options in updates:
                    for tensor, guess in guesses.items():
                        tensor.grad = guess
                    moved = list(guesses)
                    update_only(self._inner, moved, in_one_pass(self._inner, moved, options))
            self._versions = [tensor._version for tensor in tensors]  # noqa: SLF001  torch's own count
        except BaseException:
            self.lift()
            raise
        finally:
            for tensor, state in true_state.items():
                self._give_state_back(tensor, state)

    def correct(self, module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
        """The true values for a state dict of the module, as a hook. Parameters keep theirs:
        backward may be still to come, and what it saved must not change."""
        true = {id(tensor): value for tensor, value in self._kept}
        for name, parameter in module.named_parameters(remove_duplicate=False):
            if id(parameter) in true and prefix + name in state:
                state[prefix + name] = true[id(parameter)].clone()

    def leave_what_changed(self) -> None:
        """Forgets the true values of parameters that were written to since the cast."""
        pairs = zip(self._kept, self._versions, strict=True)
        self._kept = [kept for kept, version in pairs if kept[0]._version == version]  # noqa: SLF001
        self._versions = [kept[0]._version for kept in self._kept]  # noqa: SLF001

    def lift(self) -> None:
        """The true values again. Without a cast it does nothing."""
        with torch.inference_mode(mode=False), torch.no_grad():
            for tensor, value in self._kept:
                tensor.copy_(value)
        self._kept = []
        self._versions = []

    def _borrow_state(self, tensor: torch.Tensor) -> dict[str, Any] | None:
        state: dict[str, Any] | None = self._inner.state.get(tensor)
        if state is not None:
            # Some keep tensors in lists (SOAP): what is guessed must not reach those either.
            self._inner.state[tensor] = {
                key: value.clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)
                for key, value in state.items()
            }
        return state

    def _give_state_back(self, tensor: torch.Tensor, state: dict[str, Any] | None) -> None:
        if state is None:
            self._inner.state.pop(tensor, None)
        else:
            self._inner.state[tensor] = state
