"""The same training in plain torch: each rank computes the gradients of all ranks by itself."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from draw import RANKS, Script
from material import loss
from party import LIMIT_OF_NORM, Party, Player
from torch import nn

Gradients = list[torch.Tensor | None]


class Reference(Party):
    """No Horovod, and nothing of ours."""

    def __init__(self, script: Script, rank: int) -> None:
        self._rank = rank
        super().__init__(script)

    def wrap(self, model: nn.Module, inner: torch.optim.Optimizer) -> Any:
        return inner

    def _make(self) -> list[Player]:
        players = super()._make()
        # Ranks share parameters, and have buffers of their own.
        shared = {id(p): p for player in players for p in player.parameters()}
        self._seen = [
            [player.model if rank == self._rank else copy.deepcopy(player.model, dict(shared))
             for player in players]
            for rank in range(RANKS)
        ]  # fmt: skip
        return players

    def step(
        self, step: int, ranks: Sequence[int], spoiled: Mapping[int, float], kept: Sequence[bool]
    ) -> None:
        """One step of every player that has kept it, with the batches of these ranks; the loss of
        some is spoiled."""
        for i, player in enumerate(self.players):
            if not kept[i]:
                continue
            mine = [
                self._gradients(i, step, rank, spoiled.get(rank, 1.0)) if rank in ranks else None
                for rank in range(RANKS)
            ]
            self._average(player, mine)
            self._update(player)
            self.after_update(player, step)
        self._clear()

    def _gradients(self, player: int, step: int, rank: int, factor: float) -> Gradients:
        self._clear()
        held = self.players[player]
        for part in range(self.script.passes):
            found = loss(self.script, self._seen[rank], player, (step, part, rank)) * factor
            (found if held.scaler is None else held.scaler.scale(found)).backward()
        return [p.grad for p in held.parameters()]

    def take_buffers(self, other: Party) -> None:
        """Those of a rank see every forward pass, also of steps that come to nothing."""
        for player, theirs in zip(self.players, other.players, strict=True):
            for mine, buffer in zip(player.model.buffers(), theirs.model.buffers(), strict=True):
                mine.copy_(buffer)

    def _clear(self) -> None:
        for parameter in self.parameters():
            parameter.grad = None

    def _average(self, player: Player, by_rank: Sequence[Gradients | None]) -> None:
        """A gradient that is missing is a zero."""
        self._clear()
        for i, parameter in enumerate(player.parameters()):
            if not parameter.requires_grad:
                continue
            # Numbers of 16 bits travel as those of 32.
            wire = torch.promote_types(parameter.dtype, torch.float32)
            total = torch.zeros_like(parameter, dtype=wire)
            for gradients in by_rank:
                gradient = None if gradients is None else gradients[i]
                total += 0 if gradient is None else gradient.to(wire)
            parameter.grad = (total / RANKS if self.script.average else total).to(parameter.dtype)

    def _update(self, player: Player) -> None:
        if player.scaler is not None:
            player.scaler.unscale_(player.optimizer)
        if self.script.clip:
            torch.nn.utils.clip_grad_norm_(player.parameters(), LIMIT_OF_NORM)
        if player.scaler is not None:
            player.scaler.step(player.optimizer)
            player.scaler.update()
        else:
            player.optimizer.step()
