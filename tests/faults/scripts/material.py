"""Models, batches and losses of a script: the same on every rank and in every call."""

from __future__ import annotations

from typing import Final

import torch
from draw import Script
from ledger import BASE, DIGITS
from torch import nn
from torch.nn import functional as F  # noqa: N812

WIDTH, CLASSES, TOKENS, ROWS = 6, 3, 11, 4
ENTRIES: Final = (1, 300, 40, 700, 5)  # elements of the ledger's parameters; large ones are cut


class Tied(nn.Module):
    """An embedding whose weight is used again as the output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.hidden = nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, TOKENS, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor, _: bool) -> torch.Tensor:
        return self.output(torch.tanh(self.hidden(self.embedding(tokens))))


class Branches(nn.Module):
    """One branch is left out now and then, and one layer is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(WIDTH, 20)
        self.never = nn.Linear(3, 40)
        self.left = nn.Linear(20, CLASSES)
        self.right = nn.Linear(20, CLASSES)

    def forward(self, x: torch.Tensor, right: bool) -> torch.Tensor:
        hidden = torch.tanh(self.stem(x))
        return self.left(hidden) + (self.right(hidden) if right else 0)


class Entry(nn.Module):
    """A parameter whose gradient is whatever amount is entered."""

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(elements))

    def forward(self, total: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
        return total + (self.weight * amount).sum()


class Ledger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.entries = nn.ModuleList(Entry(elements) for elements in ENTRIES)

    def forward(self, amount: torch.Tensor, _: bool) -> torch.Tensor:
        total = torch.zeros(())
        for entry in self.entries:
            total = entry(total, amount)
        return total


class Plain(nn.Sequential):
    """Layers one after the other."""

    def forward(self, x: torch.Tensor, _: bool = True) -> torch.Tensor:
        return super().forward(x)


def mlp(inputs: int, outputs: int) -> Plain:
    return Plain(
        nn.Linear(inputs, 33), nn.Tanh(), nn.Linear(33, 20), nn.Tanh(), nn.Linear(20, outputs)
    )


def cnn() -> Plain:
    return Plain(
        nn.Conv2d(2, 4, 3),
        nn.BatchNorm2d(4),
        nn.Tanh(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16, CLASSES),
    )


def models(script: Script) -> list[nn.Module]:
    """One model, or a critic and a generator; each with an optimizer of its own."""
    torch.manual_seed(script.seed)
    made: list[nn.Module]
    if script.family == "gan":
        made = [mlp(CLASSES, 1), mlp(WIDTH, CLASSES)]
    else:
        kinds = {"cnn": cnn, "tied": Tied, "unused": Branches, "ledger": Ledger}
        made = [kinds.get(script.family, lambda: mlp(WIDTH, CLASSES))()]
    return [model.to(getattr(torch, script.dtype)) for model in made]


def uses_branch(script: Script, step: int, rank: int) -> bool:
    """Whether a rank takes the second branch of its model in a step."""
    return {
        "never": False,
        "odd steps": step % 2 == 1,
        "one rank": rank == 0,
        "in turn": step % 2 == rank % 2,
    }[script.branch]


def amount(script: Script, step: int, part: int, rank: int) -> float:
    """What a rank enters into the ledger in one of the passes of a step: the average over ranks of
    its sum over passes is BASE**digit, and no other mixture of parts is."""
    shares = {1: (1.0,), 2: (0.25, 0.75), 3: (0.25, 0.25, 0.5)}[script.passes]
    return float(BASE) ** (step % DIGITS) * shares[part] * (0.5 if rank == 0 else 1.5)


class Batches:
    """The batch of any rank, step and backward pass."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def _random(self, player: int, step: int, part: int, rank: int) -> torch.Generator:
        place = ((self._script.seed * 4 + player) * 1000 + step) * 32 + part * 8 + rank
        return torch.Generator().manual_seed(place)

    def at(self, player: int, step: int, part: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets."""
        script, random = self._script, self._random(player, step, part, rank)
        if script.family == "tied":
            tokens = torch.randint(0, TOKENS, (2, ROWS), generator=random)
            return tokens[0], tokens[1]
        shape = (ROWS, 2, 5, 5) if script.family == "cnn" else (ROWS, WIDTH)
        inputs = torch.randn(*shape, generator=random, dtype=torch.float32)
        targets = torch.randn(ROWS, CLASSES, generator=random, dtype=torch.float32)
        dtype = getattr(torch, script.dtype)
        return inputs.to(dtype), targets.to(dtype)


def loss(
    script: Script, players: list[nn.Module], player: int, place: tuple[int, int, int]
) -> torch.Tensor:
    """The loss of one player at a place: step, backward pass, rank."""
    step, part, rank = place
    model = players[player]
    if script.family == "ledger":
        return model(torch.tensor(amount(script, step, part, rank)), True)
    inputs, targets = Batches(script).at(player, step, part, rank)
    if script.family == "gan":
        critic, generator = players
        made = generator(inputs)
        if player == 1:
            return -critic(made).mean()
        return critic(made.detach()).mean() - critic(targets).mean() + critic(targets).pow(2).mean()
    outputs = model(inputs, uses_branch(script, step, rank))
    if targets.dtype == torch.int64:
        return F.cross_entropy(outputs, targets)
    return F.mse_loss(outputs, targets)
