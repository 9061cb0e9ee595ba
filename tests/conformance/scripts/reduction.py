"""How gradients become averages: operations, compression, groups, accumulation, sparse ones."""

from __future__ import annotations

from typing import Any

import torch
from harness import main
from material import (
    CLASSES,
    WIDTH,
    Branches,
    backward,
    batch,
    error,
    gradients,
    network,
    parameters,
    replicas_equal,
    sgd,
    train,
    trained,
    wrapped,
)
from torch import nn
from torch.nn import functional as F  # noqa: N812


def _trained_with(hvd: Any, model: nn.Module | None = None, **arguments: Any) -> dict[str, Any]:
    made = network() if model is None else model
    optimizer = wrapped(hvd, made, **arguments)
    train(hvd, made, optimizer, 12)
    return trained(hvd, made, optimizer)


def case_average(hvd: Any) -> dict[str, Any]:
    """Plain training: parameters, gradients and state after it."""
    return _trained_with(hvd)


def case_sum(hvd: Any) -> dict[str, Any]:
    """op=Sum."""
    model = network()
    return _trained_with(hvd, model, optimizer=sgd(model, lr=0.02), op=hvd.Sum)


def case_predivide(hvd: Any) -> dict[str, Any]:
    """gradient_predivide_factor."""
    return _trained_with(hvd, gradient_predivide_factor=3.0)


def case_fp16(hvd: Any) -> dict[str, Any]:
    """Compression.fp16: gradients travel as halves, and come back in their own type."""
    return _trained_with(hvd, compression=hvd.Compression.fp16)


def case_fp16_sum(hvd: Any) -> dict[str, Any]:
    """Compression.fp16 with op=Sum."""
    return _trained_with(hvd, compression=hvd.Compression.fp16, op=hvd.Sum)


def case_fp16_of_other_types(module: Any) -> dict[str, Any]:
    """Compression.fp16 on tensors: floats become halves and return, integers stay."""
    found = {}
    for dtype in (torch.float32, torch.float64, torch.uint8, torch.int8, torch.int32, torch.int64):
        small, context = module.Compression.fp16.compress(torch.ones(5, 5, dtype=dtype))
        back = module.Compression.fp16.decompress(small, context)
        found[str(dtype)] = [str(small.dtype), str(back.dtype), float(back.double().sum())]
    return found


def case_a_compression_of_the_users(hvd: Any) -> dict[str, Any]:
    """A class with compress() and decompress() of the user's own."""

    class Halved:
        @staticmethod
        def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.dtype]:
            return tensor.double() / 2, tensor.dtype

        @staticmethod
        def decompress(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
            return (tensor * 2).to(dtype)

    return _trained_with(hvd, compression=Halved)


def _grouped(hvd: Any, model: nn.Module, groups: Any) -> dict[str, Any]:
    try:
        return {"trained": _trained_with(hvd, model, groups=groups)}
    except ValueError:
        return {"trained": "ValueError"}


def case_number_of_groups(hvd: Any) -> dict[str, Any]:
    """groups=2."""
    return _grouped(hvd, network(), 2)


def case_listed_groups(hvd: Any) -> dict[str, Any]:
    """groups as lists of tensors."""
    model = network()
    return _grouped(hvd, model, [list(model[0].parameters()), [model[4].weight]])


def case_types_of_parameters(hvd: Any) -> dict[str, Any]:
    """Parameters of several types in one model."""

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(1)
            self.wide = nn.Linear(WIDTH, 9).double()
            self.middle = nn.Linear(9, 11)
            self.narrow = nn.Linear(11, 5).half()
            self.last = nn.Linear(5, CLASSES)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.tanh(self.wide(x.double())).float()
            x = torch.tanh(self.middle(x)).half()
            return self.last(self.narrow(x).float())

    return _trained_with(hvd, Mixed())


def case_tied_weights(hvd: Any) -> dict[str, Any]:
    """One parameter in two modules."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))
    model[2].weight = model[0].weight
    optimizer = wrapped(hvd, model)
    for step in range(8):
        optimizer.zero_grad()
        model(batch(hvd, step)[0]).pow(2).mean().div(100).backward()
        optimizer.step()
    return trained(hvd, model, optimizer)


def case_passes(hvd: Any) -> dict[str, Any]:
    """backward_passes_per_step=3 adds up three passes."""
    model = network()
    optimizer = wrapped(hvd, model, backward_passes_per_step=3)
    for step in range(6):
        optimizer.zero_grad()
        for number in range(3):
            backward(hvd, model, 3 * step + number)
        optimizer.step()
    return trained(hvd, model, optimizer)


def case_short_window(hvd: Any) -> dict[str, Any]:
    """step() after fewer passes than announced reduces what there is."""
    model = network()
    optimizer = wrapped(hvd, model, backward_passes_per_step=3)
    for step, passes in enumerate((3, 3, 1, 3, 2, 3)):
        optimizer.zero_grad()
        for number in range(passes):
            backward(hvd, model, 3 * step + number)
        optimizer.step()
    return trained(hvd, model, optimizer)


def case_changed_passes(hvd: Any) -> dict[str, Any]:
    """set_backward_passes_per_step() between two steps."""
    model = network()
    optimizer = wrapped(hvd, model)
    for step in range(9):
        passes = 1 + step // 3
        optimizer.set_backward_passes_per_step(passes)
        optimizer.zero_grad()
        for number in range(passes):
            backward(hvd, model, 3 * step + number)
        optimizer.step()
    return trained(hvd, model, optimizer, passes=optimizer.backward_passes_per_step)


def case_too_many_passes(hvd: Any) -> dict[str, Any]:
    """One pass more than announced before step(): backward() raises an AssertionError."""
    found = {}
    for passes in (1, 2):
        model = network()
        optimizer = wrapped(hvd, model, backward_passes_per_step=passes)
        train(hvd, model, optimizer, 6) if passes == 1 else None
        for number in range(passes):
            backward(hvd, model, number)
        found[str(passes)] = error(lambda model=model: backward(hvd, model, 9), AssertionError)
        optimizer.synchronize()
    return found


def case_used_on_one_rank(hvd: Any) -> dict[str, Any]:
    """A parameter used on one rank only: the others contribute zeros."""
    model = Branches()
    optimizer = wrapped(hvd, model)
    for step in range(10):
        optimizer.zero_grad()
        backward(hvd, model, step, right=hvd.rank() == 0)
        optimizer.step()
    return trained(hvd, model, optimizer)


def case_other_branches_on_each_rank(hvd: Any) -> dict[str, Any]:
    """Each rank uses another output of the model."""
    model = Branches()
    optimizer = wrapped(hvd, model)
    for step in range(10):
        optimizer.zero_grad()
        backward(hvd, model, step, left=hvd.rank() == 0, right=hvd.rank() == 1)
        optimizer.step()
    return trained(hvd, model, optimizer)


def case_unused_everywhere(hvd: Any) -> dict[str, Any]:
    """A parameter that no rank used gets a gradient of zeros; momentum and decay move it."""
    model = Branches()
    optimizer = wrapped(hvd, model)
    for step in range(12):
        optimizer.zero_grad()
        backward(hvd, model, step, right=not 3 <= step < 7)
        optimizer.step()
    before = trained(hvd, model, optimizer)
    optimizer.zero_grad()
    backward(hvd, model, 12, right=False)
    optimizer.step()
    zeros = {name: p.grad is not None and not p.grad.any() for name, p in model.named_parameters()}
    return {"before": before, "after": trained(hvd, model, optimizer), "zeros": zeros}


def case_unused_from_the_start(hvd: Any) -> dict[str, Any]:
    """A parameter that is used for the first time in a later step."""
    model = Branches()
    optimizer = wrapped(hvd, model)
    for step in range(10):
        optimizer.zero_grad()
        backward(hvd, model, step, left=step >= 6)
        optimizer.step()
    return trained(hvd, model, optimizer)


class _Lookup(nn.Module):
    """An embedding with sparse gradients, and a dense layer if asked for."""

    def __init__(self, dense: bool) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.embedding = nn.Embedding(13, 6, sparse=True)
        self.output = nn.Linear(6, 13) if dense else nn.Identity()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.output(torch.tanh(self.embedding(tokens)))


def _train_lookup(hvd: Any, model: nn.Module, optimizer: Any) -> None:
    generator = torch.Generator().manual_seed(hvd.rank())
    for _ in range(8):
        tokens = torch.randint(0, 13, (5 + hvd.rank(),), generator=generator)
        optimizer.zero_grad()
        model(tokens).pow(2).sum().backward()
        optimizer.step()


def case_sparse_gradients(hvd: Any) -> dict[str, Any]:
    """Sparse gradients beside dense ones, with SGD."""
    model = _Lookup(dense=True)
    optimizer = wrapped(hvd, model, torch.optim.SGD(model.parameters(), lr=0.01))
    _train_lookup(hvd, model, optimizer)
    return {
        "parameters": parameters(model),
        "gradients": gradients(model),
        "sparse": model.embedding.weight.grad.is_sparse,
    }


def case_sparse_as_dense(hvd: Any) -> dict[str, Any]:
    """sparse_as_dense: they travel dense, and are sparse again for the update."""
    model = _Lookup(dense=True)
    inner = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer = wrapped(hvd, model, inner, sparse_as_dense=True)
    _train_lookup(hvd, model, optimizer)
    return {"parameters": parameters(model), "sparse": model.embedding.weight.grad.is_sparse}


def case_sparse_adam(hvd: Any) -> dict[str, Any]:
    """SparseAdam, with sparse and with dense messages, without names."""
    found = {}
    for dense in (False, True):
        model = _Lookup(dense=False)
        inner = torch.optim.SparseAdam(list(model.parameters()), lr=0.1)
        optimizer = hvd.DistributedOptimizer(inner, sparse_as_dense=dense)
        _train_lookup(hvd, model, optimizer)
        found[str(dense)] = {"parameters": parameters(model), "equal": replicas_equal(hvd, model)}
    return found


def case_two_optimizers(hvd: Any) -> dict[str, Any]:
    """Two optimizers with two models whose parameters have other names, in turn."""
    first, second = network(1), Branches()
    one, two = wrapped(hvd, first), wrapped(hvd, second, backward_passes_per_step=1)
    for step in range(8):
        for model, optimizer in ((first, one), (second, two)):
            optimizer.zero_grad()
            backward(hvd, model, step)
            optimizer.step()
    return {"first": trained(hvd, first, one), "second": trained(hvd, second, two)}


def case_gradients_after_step(hvd: Any) -> dict[str, Any]:
    """p.grad after step() is the average, not this rank's own gradient."""
    model = network()
    optimizer = wrapped(hvd, model)
    found = {}
    for step in range(10):
        optimizer.zero_grad()
        inputs, targets = batch(hvd, step)
        F.cross_entropy(model(inputs), targets.argmax(1)).backward()
        optimizer.step()
        found[str(step)] = gradients(model)
    return found


if __name__ == "__main__":
    main(globals(), "reduction")
