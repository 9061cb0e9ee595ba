"""What scenarios are made of: a small network, data that differs over ranks, outcomes as data."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

WIDTH, CLASSES = 7, 4


def network(seed: int = 0) -> nn.Sequential:
    """The same weights on every rank and in every call."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(WIDTH, 33), nn.Tanh(), nn.Linear(33, 32), nn.Tanh(), nn.Linear(32, CLASSES)
    )


class Branches(nn.Module):
    """A stem, and two branches that can be left out."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.stem = nn.Linear(WIDTH, 20)
        self.left = nn.Linear(20, CLASSES)
        self.right = nn.Linear(20, CLASSES)

    def forward(self, x: torch.Tensor, left: bool = True, right: bool = True) -> torch.Tensor:
        hidden = torch.tanh(self.stem(x))
        result = hidden.mean() + torch.zeros(x.shape[0], CLASSES)
        if left:
            result = result + self.left(hidden)
        if right:
            result = result + self.right(hidden)
        return result


def sgd(model: nn.Module, **options: Any) -> torch.optim.SGD:
    """With momentum and decay, so that a zero gradient moves a parameter."""
    return torch.optim.SGD(
        model.parameters(), **{"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01, **options}
    )


def wrapped(hvd: Any, model: nn.Module, optimizer: Any = None, **arguments: Any) -> Any:
    """The distributed optimizer of a module over all parameters of a model."""
    made = sgd(model) if optimizer is None else optimizer
    return hvd.DistributedOptimizer(made, named_parameters=model.named_parameters(), **arguments)


def batch(hvd: Any, step: int, rows: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    """Another one on each rank and in each step, the same in every run."""
    generator = torch.Generator().manual_seed(1000 * step + hvd.rank())
    shapes = ((rows, WIDTH), (rows, CLASSES))
    inputs, targets = (torch.randn(*shape, generator=generator) for shape in shapes)
    return inputs, targets


def loss_of(hvd: Any, model: nn.Module, step: int, **use: bool) -> torch.Tensor:
    inputs, targets = batch(hvd, step)
    return F.mse_loss(model(inputs, **use), targets)


def backward(hvd: Any, model: nn.Module, step: int, **use: bool) -> None:
    loss_of(hvd, model, step, **use).backward()


def train(hvd: Any, model: nn.Module, optimizer: Any, steps: int = 8, first: int = 0) -> None:
    """Plain steps."""
    for step in range(first, first + steps):
        optimizer.zero_grad()
        backward(hvd, model, step)
        optimizer.step()


def digest(tensor: torch.Tensor | None) -> str | None:
    """Its bits; and, to read, its type and sum."""
    if tensor is None:
        return None
    dense = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    flat = dense.cpu().contiguous().reshape(-1)
    sha = hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()[:12]
    return f"{tensor.dtype} {sha} sum {flat.double().sum().item():.6g}"


def parameters(model: nn.Module) -> dict[str, str | None]:
    return {name: digest(p) for name, p in model.named_parameters()}


def gradients(model: nn.Module) -> dict[str, str | None]:
    return {name: digest(p.grad) for name, p in model.named_parameters()}


def plain(value: Any) -> Any:
    """A value of a state or an option, with tensors as digests; types count too."""
    if isinstance(value, torch.Tensor):
        return digest(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(plain(item) for item in value)
    return value


def state(optimizer: Any) -> list[Any]:
    """What the optimizer keeps for each parameter, in the order of its groups."""
    held = optimizer.state
    members = [p for group in optimizer.param_groups for p in group["params"]]
    return [plain(dict(held[p])) if p in held else None for p in members]


def options(optimizer: Any) -> list[dict[str, Any]]:
    """The options of each group."""
    return [
        {key: plain(value) for key, value in group.items() if key != "params"}
        for group in optimizer.param_groups
    ]


def replicas_equal(hvd: Any, model: nn.Module) -> bool:
    """Whether all ranks hold the same parameters."""
    everyone = hvd.allgather_object(parameters(model))
    return all(one == everyone[0] for one in everyone)


def trained(hvd: Any, model: nn.Module, optimizer: Any, **more: Any) -> dict[str, Any]:
    """The outcome of a training."""
    return {
        "parameters": parameters(model),
        "gradients": gradients(model),
        "state": state(optimizer),
        "replicas_equal": replicas_equal(hvd, model),
        **more,
    }


def error(action: Callable[[], Any], *kinds: type[Exception]) -> str:
    """Which of these errors an ``except`` would catch; else the error's own name, or 'none'."""
    try:
        action()
    except Exception as caught:  # noqa: BLE001  (whatever it is, the outcome names it)
        fitting = [kind.__name__ for kind in kinds if isinstance(caught, kind)]
        return fitting[0] if fitting else type(caught).__name__
    return "none"


def warned(action: Callable[[], Any]) -> list[str]:
    """The categories of all warnings of an action, in order."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        action()
    return [one.category.__name__ for one in seen]
