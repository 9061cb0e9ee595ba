"""The training with our optimizer, on this rank: as a script does it, with its odd habits."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import horovod.torch as stock
import torch
from draw import Event, Script
from looks import look
from party import LIMIT_OF_NORM, Party, Player, layers_of
from torch import nn

import deft_horovod.torch as hvd
from tests.parallel.scripts.late_plans import Late, plan_of

# Several messages even for the smallest model, and large parameters are cut.
SIZES: Final = {
    "bucket_bytes": 2048,
    "first_bucket_bytes": 1024,
    "partition_bytes": 1024,
    "credit_bytes": 2500,
}


class PlannedError(Exception):
    """Raised by a script of the campaign, as one with a fault of its own would."""


def hand_plan(script: Script, model: nn.Module) -> str:
    """A file with a plan that fits the limits of the script."""
    r = random.Random(f"plan {script.seed}")
    merges = [k for k in (1, 2, 4) if k <= (script.max_merge or 1)]
    timings = []
    for _ in model.parameters():
        late = Late(r.randint(0, script.max_delay or 0), r.choice(merges), forward=r.random() < 0.3)
        gated = late.delay == 0 and late.merged == 1 and r.random() < 0.4
        timings.append(Late(gated=True, forward=late.forward) if gated else late)
    path = Path(tempfile.mkdtemp(prefix="deft-campaign-")) / "plan.json"
    plan_of(model, timings).save(path)
    shared: str = stock.broadcast_object(str(path), name="campaign.plan")
    return shared


class Ours(Party):
    """Under ``deft_horovod.torch``."""

    def __init__(self, script: Script) -> None:
        self._dropped_before = 0
        super().__init__(script)

    def wrap(self, model: nn.Module, inner: torch.optim.Optimizer) -> Any:
        script = self.script
        config: dict[str, Any] = dict(SIZES)
        for name in ("max_delay", "max_merge", "correction", "accuracy_budget"):
            if getattr(script, name) is not None:
                config[name] = getattr(script, name)
        policy: str | None = script.policy
        if policy == "by_hand":
            policy = None
            config = {"plan_file": hand_plan(script, model), "correction": script.correction}
        return hvd.DistributedOptimizer(
            inner,
            named_parameters=list(model.named_parameters()),
            backward_passes_per_step=script.passes,
            op=hvd.Average if script.average else hvd.Sum,
            policy=policy,
            config=config,
        )

    @property
    def late(self) -> bool:
        """Whether updates may be on their way between steps."""
        return any(player.optimizer.stats().get("late", False) for player in self.players)

    @property
    def dropped(self) -> int:
        """Generations that were thrown away so far."""
        return self._dropped_before + sum(
            player.optimizer.stats().get("dropped", 0) for player in self.players
        )

    def resume(self) -> None:
        self._dropped_before = self.dropped
        super().resume()

    def flush(self) -> None:
        for player in self.players:
            player.optimizer.flush()

    def step(
        self, step: int, events: tuple[Event, ...], spoiled: Mapping[int, float]
    ) -> list[bool]:
        """One step of every player. False: the script has thrown it away."""
        return [self._turn(i, step, events, spoiled) for i in range(len(self.players))]

    def _turn(
        self, number: int, step: int, events: tuple[Event, ...], spoiled: Mapping[int, float]
    ) -> bool:
        player, kinds = self.players[number], {event.kind for event in events}
        self._look("before forward", player, events)
        if self.script.closure:
            self._step_with_closure(number, step, player)
        else:
            if self.script.clearing != "after" or self.script.family == "gan":
                self.zero_grad(player)
            raised = self._passes(number, step, events, spoiled)
            if "flush before step" in kinds:
                player.optimizer.flush()
            if raised or "discard" in kinds or not self._update(player, bool(spoiled)):
                player.optimizer.zero_grad()
                return False
        self._look("after step", player, events)
        self.after_update(player, step)
        if self.script.clearing == "after":
            self.zero_grad(player)
        return True

    def _passes(
        self, number: int, step: int, events: tuple[Event, ...], spoiled: Mapping[int, float]
    ) -> bool:
        """Forward and backward passes; whether an exception ended them."""
        player, rank = self.players[number], stock.rank()
        with raising(player.model, events) as failing:
            for part in range(self.script.passes):
                loss = failing(lambda part=part: self.loss(number, (step, part, rank)))
                if loss is None:
                    return True
                self._look("after forward", player, events)
                loss = loss * spoiled.get(rank, 1.0)
                scaled = loss if player.scaler is None else player.scaler.scale(loss)
                if failing(lambda scaled=scaled: scaled.backward() or True) is None:
                    return True
                last = part == self.script.passes - 1
                self._look("after backward" if last else "between passes", player, events)
        return False

    def _look(self, place: str, player: Player, events: tuple[Event, ...]) -> None:
        for event in events:
            if event.place == place and event.rank in (None, stock.rank()):
                look(event.kind, player.model, player.optimizer, player.schedule)

    def _step_with_closure(self, number: int, step: int, player: Player) -> None:
        def evaluate() -> torch.Tensor:
            player.optimizer.zero_grad()
            loss = self.loss(number, (step, 0, stock.rank()))
            loss.backward()
            return loss

        player.optimizer.step(evaluate)

    def _update(self, player: Player, spoiled: bool) -> bool:
        """The end of the step. False: averages are not finite, and nobody scales losses."""
        optimizer, scaler = player.optimizer, player.scaler
        if scaler is not None and self.script.scaler == "plain":
            scaler.step(optimizer)
            scaler.update()
            return True
        if scaler is None and not self.script.clip and not spoiled:
            optimizer.step()
            return True
        optimizer.synchronize()
        if scaler is not None:
            scaler.unscale_(optimizer)
        elif spoiled and not _finite(player.model):
            return False
        if self.script.clip:
            torch.nn.utils.clip_grad_norm_(player.parameters(), LIMIT_OF_NORM)
        with optimizer.skip_synchronize():
            if scaler is None:
                optimizer.step()
            else:
                scaler.step(optimizer)
        if scaler is not None:
            scaler.update()
        return True


def _finite(model: nn.Module) -> bool:
    return all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)


class raising:  # noqa: N801  (reads as a statement)
    """Inside, what a script calls raises on this rank if an event says so."""

    def __init__(self, model: nn.Module, events: tuple[Event, ...]) -> None:
        mine = [e.kind for e in events if e.rank in (None, stock.rank())]
        self._kinds = [kind for kind in mine if kind.startswith("raise")]
        self._model = model
        self._handles: list[Any] = []

    def __enter__(self) -> Callable[[Callable[[], Any]], Any]:
        layers = layers_of(self._model)
        middle = layers[len(layers) // 2]
        first = next(middle.parameters(recurse=False))
        for kind in self._kinds:
            if kind == "raise in forward":
                handle = middle.register_forward_pre_hook(_raise)
            elif kind == "raise in backward":
                handle = first.register_hook(_raise)
            else:
                handle = first.register_post_accumulate_grad_hook(_raise)
            self._handles.append(handle)
        return self._called

    def _called(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except PlannedError:
            return None

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()


def _raise(*_: Any) -> None:
    raise PlannedError
