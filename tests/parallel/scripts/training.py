"""Small models, data that differs over ranks, and comparisons, for all rank programs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import horovod.torch as stock
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from tests.parallel.scripts.device import DEVICE

WIDTH, CLASSES, TOKENS = 7, 4, 13


class Tied(nn.Module):
    """An embedding whose weight is used again as the output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 6)
        self.hidden = nn.Linear(6, 6)
        self.output = nn.Linear(6, TOKENS, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.output(torch.tanh(self.hidden(self.embedding(tokens))))


class Mixed(nn.Module):
    """Layers of three precisions."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(WIDTH, 9).double()
        self.middle = nn.Linear(9, 11)
        self.narrow = nn.Linear(11, 5).half()
        self.last = nn.Linear(5, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.wide(x.double())).float()
        x = torch.tanh(self.middle(x)).half()
        return self.last(self.narrow(x).float())


def mlp(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    layers = nn.Sequential(
        nn.Linear(WIDTH, 33), nn.Tanh(), nn.Linear(33, 32), nn.Tanh(), nn.Linear(32, CLASSES)
    )
    return layers.to(DEVICE)


def cnn(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    layers = nn.Sequential(
        nn.Conv2d(3, 5, 3),
        nn.BatchNorm2d(5),
        nn.Tanh(),
        nn.Conv2d(5, 6, 3, groups=1),
        nn.BatchNorm2d(6),
        nn.Tanh(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, CLASSES),
    )
    return layers.to(DEVICE)


def make_model(kind: str) -> nn.Module:
    """The same weights on every rank and in every call."""
    torch.manual_seed(0)
    makers: dict[str, Callable[[], nn.Module]] = {
        "mlp": mlp,
        "double": lambda: mlp().double(),
        "cnn": cnn,
        "channels_last": lambda: cnn().to(memory_format=torch.channels_last),  # type: ignore[call-overload]
        "tied": Tied,
        "mixed": Mixed,
    }
    return makers[kind]().to(DEVICE)


class Data:
    """Batches that differ from rank to rank, the same in every run."""

    def __init__(self, kind: str = "mlp", rank: int | None = None, rows: int = 6) -> None:
        self._kind = kind
        self._rows = rows
        seed = stock.rank() if rank is None else rank
        self._generator = torch.Generator().manual_seed(1000 + seed)

    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The same values on every device."""
        inputs, targets = self._on_host()
        return inputs.to(DEVICE), targets.to(DEVICE)

    def _on_host(self) -> tuple[torch.Tensor, torch.Tensor]:
        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=self._generator)

        if self._kind == "tied":
            tokens = torch.randint(0, TOKENS, (self._rows,), generator=self._generator)
            return tokens, torch.randint(0, TOKENS, (self._rows,), generator=self._generator)
        if self._kind in ("cnn", "channels_last"):
            images = normal(self._rows, 3, 6, 6)
            if self._kind == "channels_last":
                images = images.contiguous(memory_format=torch.channels_last)
            return images, normal(self._rows, CLASSES)
        dtype = torch.float64 if self._kind == "double" else torch.float32
        return normal(self._rows, WIDTH).to(dtype), normal(self._rows, CLASSES).to(dtype)


def loss_of(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Squared error, or cross entropy where the targets are classes."""
    inputs, targets = batch
    outputs = model(inputs)
    if targets.dtype == torch.int64:
        return F.cross_entropy(outputs, targets)
    return F.mse_loss(outputs.to(targets.dtype), targets)  # torch 2.4 has none for bfloat16


def digest(tensors: Iterable[torch.Tensor]) -> str:
    """SHA-256 of the bytes of all tensors."""
    state = hashlib.sha256()
    for tensor in tensors:
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        state.update(flat.view(torch.uint8).numpy().tobytes())
    return state.hexdigest()


def gathered(values: list[float]) -> list[list[float]]:
    """These numbers from every rank."""
    mine = torch.tensor([values], dtype=torch.float64)
    everyone: list[list[float]] = stock.allgather(mine, name=f"test.{len(values)}").tolist()
    return everyone


def equal_on_all_ranks(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether these have the same bytes everywhere."""
    mine = torch.tensor([list(bytes.fromhex(digest(tensors)))], dtype=torch.uint8)
    everyone = stock.allgather(mine, name="test.digest")
    return bool((everyone == everyone[0]).all())


def assert_equal(ours: Iterable[torch.Tensor], theirs: Iterable[torch.Tensor], what: str) -> None:
    """Bit for bit."""
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if not torch.equal(a, b):
            raise AssertionError(
                f"{what}: tensor {i} of shape {tuple(a.shape)} differs by "
                f"{(a - b).abs().max().item():.3g}"
            )


def assert_equal_models(ours: nn.Module, theirs: nn.Module, what: str = "parameters") -> None:
    """Parameters and buffers, bit for bit."""
    assert_equal(ours.state_dict().values(), theirs.state_dict().values(), what)
