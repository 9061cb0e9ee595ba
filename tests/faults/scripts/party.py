"""What a training has, whoever averages gradients: players with a model and an optimizer each."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from draw import Script
from material import loss, models
from torch import nn
from torch.optim import lr_scheduler
from torch.optim.swa_utils import AveragedModel

LIMIT_OF_NORM: Final = 0.5
_MAKERS: Final[dict[str, tuple[str, float, dict[str, Any]]]] = {
    "sgd": ("SGD", 0.05, {}),
    "momentum": ("SGD", 0.05, {"momentum": 0.9, "weight_decay": 0.01}),
    "nesterov": ("SGD", 0.05, {"momentum": 0.8, "nesterov": True}),
    "adam": ("Adam", 0.01, {"weight_decay": 0.01}),
    "adamw": ("AdamW", 0.01, {}),
    "amsgrad": ("Adam", 0.01, {"amsgrad": True}),
    "nadam": ("NAdam", 0.01, {}),
    "radam": ("RAdam", 0.01, {}),
    "adamax": ("Adamax", 0.01, {}),
    "rmsprop": ("RMSprop", 0.01, {"momentum": 0.5}),
    "adagrad": ("Adagrad", 0.02, {}),
    "adadelta": ("Adadelta", 0.5, {}),
}


def make_optimizer(script: Script, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """torch's own."""
    name, rate, options = _MAKERS[script.optimizer]
    if script.family == "ledger":
        rate = 1.0
    given = torch.tensor(rate) if script.tensor_rate else rate
    made: torch.optim.Optimizer = getattr(torch.optim, name)(parameters, lr=given, **options)
    return made


def make_schedule(script: Script, optimizer: torch.optim.Optimizer) -> Any:
    """None where the rate is constant."""
    if script.schedule == "halves":
        return lr_scheduler.StepLR(optimizer, 9, 0.5)
    if script.schedule == "cosine":
        return lr_scheduler.CosineAnnealingLR(optimizer, script.steps)
    if script.schedule == "warmup":
        return lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
    if script.schedule == "plateau":
        return lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=4)
    return None


def layers_of(model: nn.Module) -> list[nn.Module]:
    """Modules that have parameters of their own."""
    return [m for m in model.modules() if list(m.parameters(recurse=False))]


@dataclass
class Player:
    """A model, its optimizer as the script holds it, and what goes with it."""

    model: nn.Module
    inner: torch.optim.Optimizer
    optimizer: Any
    schedule: Any
    scaler: Any

    def parameters(self) -> list[nn.Parameter]:
        return list(self.model.parameters())

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Whatever has a state."""
        yield "model", self.model
        yield "optimizer", self.optimizer
        if self.schedule is not None:
            yield "schedule", self.schedule
        if self.scaler is not None:
            yield "scaler", self.scaler


class Party:
    """The players of a script and what it does with them between steps."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.frozen = False
        self.saved: Any = None
        self.players = self._make()
        self.averages = [AveragedModel(p.model) for p in self.players] if script.ema else []

    def wrap(self, model: nn.Module, inner: torch.optim.Optimizer) -> Any:
        """What the script steps."""
        raise NotImplementedError

    def _make(self) -> list[Player]:
        players = []
        for model in models(self.script):
            inner = make_optimizer(self.script, model.parameters())
            optimizer = self.wrap(model, inner)
            scheduled = inner if self.script.schedule_of_inner else optimizer
            schedule = make_schedule(self.script, scheduled)
            scaler = None
            if self.script.scaler != "none":
                scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=6)
            players.append(Player(model, inner, optimizer, schedule, scaler))
        return players

    def tensors(self) -> list[torch.Tensor]:
        """Parameters and buffers of all models."""
        return [t for player in self.players for t in player.model.state_dict().values()]

    def parameters(self) -> list[nn.Parameter]:
        return [p for player in self.players for p in player.parameters()]

    def loss(self, player: int, place: tuple[int, int, int]) -> torch.Tensor:
        return loss(self.script, [p.model for p in self.players], player, place)

    def zero_grad(self, player: Player) -> None:
        """As this script clears gradients."""
        if self.script.clearing == "model" and self.script.family != "gan":
            player.model.zero_grad()
        else:
            player.optimizer.zero_grad(set_to_none=self.script.clearing != "zeros")

    def after_update(self, player: Player, step: int) -> None:
        """The step of a schedule."""
        if player.schedule is None:
            return
        if self.script.schedule == "plateau":
            player.schedule.step(float(step % 7))
        else:
            player.schedule.step()

    def freeze(self, frozen: bool) -> None:
        """The first layer is left alone from now on, or trained again."""
        self.frozen = frozen
        for player in self.players:
            for parameter in layers_of(player.model)[0].parameters(recurse=False):
                parameter.requires_grad_(not frozen)
                parameter.grad = None

    def save(self) -> None:
        self.saved = [
            {name: copy.deepcopy(part.state_dict()) for name, part in player.parts()}
            for player in self.players
        ]

    def load(self) -> None:
        """What was saved, into the same objects."""
        for player, state in zip(self.players, self.saved, strict=True):
            for name, part in player.parts():
                part.load_state_dict(copy.deepcopy(state[name]))

    def resume(self) -> None:
        """New objects load what these have; these are gone."""
        kept, self.saved = self.saved, None
        self.save()
        self.players = []  # theirs may not be held on to while others are made
        self.players = self._make()
        if self.frozen:
            self.freeze(True)
        self.load()
        self.saved = kept

    def evaluate(self, step: int) -> list[torch.Tensor]:
        """Losses under no_grad, with modules in evaluation mode."""
        for player in self.players:
            player.model.eval()
        with torch.no_grad():
            found = [self.loss(i, (step, 0, 0)) for i in range(len(self.players))]
        for player in self.players:
            player.model.train()
        return found

    def copies(self, step: int) -> list[torch.Tensor]:
        """Losses of copies of the models."""
        copied = [copy.deepcopy(player.model) for player in self.players]
        with torch.no_grad():
            return [loss(self.script, copied, i, (step, 0, 1)) for i in range(len(copied))]

    def follow(self) -> None:
        """Moving averages of weights take part of this step."""
        for average, player in zip(self.averages, self.players, strict=False):
            average.update_parameters(player.model)
