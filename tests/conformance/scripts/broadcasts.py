"""Broadcasts of parameters, optimizer state and objects."""

from __future__ import annotations

import copy
import inspect
import warnings
from typing import Any

import torch
from harness import main
from material import (
    backward,
    error,
    gradients,
    loss_of,
    network,
    options,
    parameters,
    plain,
    replicas_equal,
    sgd,
    state,
    train,
    wrapped,
)
from torch import nn

# LBFGS is refused by Horovod, SparseAdam and Muon want other gradients or shapes.
CLASSES = sorted(
    (
        kind
        for kind in torch.optim.Optimizer.__subclasses__()
        if kind.__module__.startswith("torch.optim")
        and kind.__name__ not in ("LBFGS", "SparseAdam", "Muon")
        and not kind.__name__.startswith("_")
    ),
    key=lambda kind: kind.__name__,
)
MANY = {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.1, "centered": True}
FEW = {"lr": 0.02}


def _made(kind: Any, model: nn.Module, given: dict[str, Any]) -> torch.optim.Optimizer:
    """With those of the options that its constructor knows."""
    known = inspect.signature(kind.__init__).parameters
    fitting = {key: value for key, value in given.items() if key in known}
    made: torch.optim.Optimizer = kind(model.parameters(), **fitting)
    return made


def _different(hvd: Any) -> nn.Module:
    """Another network on each rank."""
    return network(seed=20 + hvd.rank())


def _equal(hvd: Any, value: Any) -> bool:
    everyone = hvd.allgather_object(value)
    return all(one == everyone[0] for one in everyone)


def _restarted(
    hvd: Any, kind: Any, given: dict[str, Any], *, state_last: bool = False
) -> dict[str, Any]:
    """Rank 0 has a checkpoint, the others begin anew: afterwards all have what rank 0 has."""
    model = network()
    optimizer = wrapped(hvd, model, _made(kind, model, given))
    train(hvd, model, optimizer, 2)
    held = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    again = _different(hvd)
    fresh = wrapped(hvd, again, _made(kind, again, given))
    if hvd.rank() == 0:
        again.load_state_dict(held[0])
        fresh.load_state_dict(held[1])
    if not state_last:
        hvd.broadcast_optimizer_state(fresh, root_rank=0)
    hvd.broadcast_parameters(again.state_dict(), root_rank=0)
    if state_last:
        hvd.broadcast_optimizer_state(fresh, root_rank=0)
    found = {
        "parameters": parameters(again),
        "state": state(fresh),
        "options": options(fresh),
        "entries": len(fresh.state_dict()["state"]),
        "equal": _equal(hvd, [parameters(again), state(fresh)]),
    }
    train(hvd, again, fresh, 2, first=2)
    return {**found, "goes_on": parameters(again), "replicas_equal": replicas_equal(hvd, again)}


def case_state_of_every_class(hvd: Any) -> dict[str, Any]:
    """A restart from rank 0's checkpoint, with every class of torch.optim."""
    return {kind.__name__: _restarted(hvd, kind, MANY) for kind in CLASSES}


def case_state_with_few_options(hvd: Any) -> dict[str, Any]:
    """The same with the default options, which need less state."""
    return {kind.__name__: _restarted(hvd, kind, FEW) for kind in CLASSES}


def case_state_after_parameters(hvd: Any) -> dict[str, Any]:
    """The state is broadcast after the parameters, with decay: are the ranks equal then?"""
    found = _restarted(hvd, torch.optim.SGD, MANY, state_last=True)
    return {key: found[key] for key in ("equal", "options", "entries")}


def case_training_of_every_class(hvd: Any) -> dict[str, Any]:
    """Every class of torch.optim trains, on a model of which each rank uses another output."""

    class TwoOutputs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(8)
            self.first, self.second = nn.Linear(7, 4), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor, second: bool) -> torch.Tensor:
            hidden = torch.tanh(self.first(x))
            return self.second(hidden) if second else hidden

    found = {}
    for kind in CLASSES:
        model = TwoOutputs()
        optimizer = wrapped(hvd, model, _made(kind, model, MANY))
        for step in range(6):
            optimizer.zero_grad()
            backward(hvd, model, step, second=hvd.rank() == 1)
            optimizer.step()
        found[kind.__name__] = {"parameters": parameters(model), "state": state(optimizer)}
    return found


def case_options_of_every_class(hvd: Any) -> dict[str, Any]:
    """Options that differ over ranks become those of rank 0, with their types."""
    first = {
        "lr": 0.01,
        "momentum": 0.8,
        "weight_decay": 0.2,
        "nesterov": True,
        "betas": (0.9, 0.999),
        "etas": (0.8, 2.4),
        "step_sizes": (1e-5, 100),
    }
    second = {
        "lr": 0.02, "momentum": 0.9, "weight_decay": 0.1, "nesterov": False,
        "betas": (0.8, 0.9), "etas": (0.25, 1.75), "step_sizes": (1e-7, 5),
    }  # fmt: skip
    found = {}
    for kind in CLASSES:
        model = network()
        given = first if hvd.rank() == 0 else second
        optimizer = wrapped(hvd, model, _made(kind, model, given))
        train(hvd, model, optimizer, 1)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        mine = options(optimizer)
        train(hvd, model, optimizer, 1, first=1)
        found[kind.__name__] = {"options": mine, "parameters": parameters(model)}
    return found


def case_a_fresh_optimizer(hvd: Any) -> dict[str, Any]:
    """An optimizer without state, with momentum and no decay: state and gradients are made."""
    model = network()
    optimizer = wrapped(hvd, model, sgd(model, weight_decay=0.0))
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    found = {
        "state": state(optimizer),
        "gradients": gradients(model),
        "parameters": parameters(model),
    }
    train(hvd, model, optimizer, 4)
    return {**found, "goes_on": parameters(model)}


def case_a_fresh_optimizer_with_decay(hvd: Any) -> dict[str, Any]:
    """The same with weight decay, which moves parameters."""
    model = network()
    before = parameters(model)
    optimizer = wrapped(hvd, model)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return {
        "moved": parameters(model) != before,
        "state": [sorted(entry) if entry else entry for entry in state(optimizer)],
        "gradients": gradients(model),
        "replicas_equal": replicas_equal(hvd, model),
    }


def case_a_fresh_adam(hvd: Any) -> dict[str, Any]:
    """A fresh Adam: which step does it count from?"""
    model = network()
    optimizer = wrapped(hvd, model, torch.optim.Adam(model.parameters(), lr=0.01))
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    found = {"state": state(optimizer), "parameters": parameters(model)}
    train(hvd, model, optimizer, 4)
    return {**found, "goes_on": parameters(model), "later": state(optimizer)}


def case_state_of_one_rank_only(hvd: Any) -> dict[str, Any]:
    """Rank 1 has trained, rank 0 is fresh, and rank 1 is the root."""
    model = network()
    optimizer = wrapped(hvd, model)
    if hvd.rank() == 1:
        plain_one = sgd(network())
        for parameter in plain_one.param_groups[0]["params"]:
            parameter.grad = torch.ones_like(parameter)
        plain_one.step()
        optimizer.load_state_dict(plain_one.state_dict())
    hvd.broadcast_optimizer_state(optimizer, root_rank=1)
    return {"state": state(optimizer), "equal": _equal(hvd, state(optimizer))}


def case_parameters_without_gradients(hvd: Any) -> dict[str, Any]:
    """An integer parameter that needs no gradient, in a fresh optimizer."""

    class Chosen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows = nn.Parameter(torch.tensor([1, 3]), requires_grad=False)
            self.values = nn.Parameter(torch.arange(4.0) + hvd.rank())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.index_select(self.values, 0, self.rows) * x

    model = Chosen()
    inner = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, nesterov=True)
    optimizer = wrapped(hvd, model, inner)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    members = optimizer.param_groups[0]["params"]
    found = {"gradients": [plain(p.grad) for p in members], "state": state(optimizer)}
    model(torch.ones(2)).sum().backward()
    optimizer.step()
    return {**found, "parameters": parameters(model)}


def case_stateless(hvd: Any) -> dict[str, Any]:
    """SGD without momentum has no state: nothing to broadcast, no error; are options shared?"""
    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.1 * (1 + hvd.rank()))
    optimizer = wrapped(hvd, model, inner)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return {"state": state(optimizer), "options": options(optimizer), "grads": gradients(model)}


def case_lbfgs(hvd: Any) -> dict[str, Any]:
    """LBFGS, wrapped and not: a ValueError."""
    model = network()
    inner = torch.optim.LBFGS(model.parameters())
    send = hvd.broadcast_optimizer_state
    return {
        "plain": error(lambda: send(inner, 0), ValueError),
        "wrapped": error(lambda: send(wrapped(hvd, model, inner), 0), ValueError),
    }


def case_an_optimizer_without_horovod(hvd: Any) -> dict[str, Any]:
    """The state of a plain torch optimizer."""
    model = _different(hvd)
    optimizer = sgd(model, lr=0.1 * (1 + hvd.rank()))
    loss_of(hvd, model, 0).backward()
    optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return {"state": state(optimizer), "options": options(optimizer)}


def case_numbers_in_the_state(hvd: Any) -> dict[str, Any]:
    """State of a user's class that is no tensor: numbers, words, None, lists, in two groups."""

    class Noting(torch.optim.Optimizer):
        def __init__(self, groups: Any, lr: float = 0.1) -> None:
            super().__init__(groups, {"lr": lr, "mode": "plain", "limits": (0, 1.5), "off": None})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in (p for p in group["params"] if p.grad is not None):
                    entry = self.state[p]
                    entry["calls"] = entry.get("calls", 0) + 1
                    entry["seen"] = [entry["calls"], "rank", hvd.rank()]
                    entry["norm"] = float(p.grad.norm())
                    entry["last"] = p.grad.clone()
                    p.sub_(p.grad, alpha=group["lr"])

    model = network()
    halves = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.05}]
    optimizer = hvd.DistributedOptimizer(Noting(halves))
    optimizer.param_groups[1]["mode"] = f"of rank {hvd.rank()}"
    for step in range(3):
        optimizer.zero_grad()
        backward(hvd, model, step)
        optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return {"state": state(optimizer), "options": options(optimizer)}


def case_a_rate_that_is_a_tensor(hvd: Any) -> dict[str, Any]:
    """A learning rate that is a tensor, another one on each rank."""
    model = network()
    rate = torch.tensor(0.01 * (1 + hvd.rank()))
    inner = torch.optim.Adam(model.parameters(), lr=rate, foreach=False)
    optimizer = wrapped(hvd, model, inner)
    train(hvd, model, optimizer, 1)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return {"options": options(optimizer), "state": state(optimizer)}


def case_sparse_model(hvd: Any) -> dict[str, Any]:
    """The model argument: a fresh optimizer over an embedding with sparse gradients."""
    torch.manual_seed(9)
    found = {}
    for kind, given in ((torch.optim.SparseAdam, {}), (torch.optim.SGD, {"lr": 0.1})):
        model = nn.Embedding(13, 6, sparse=True)
        optimizer = wrapped(hvd, model, kind(list(model.parameters()), **given))
        hvd.broadcast_optimizer_state(optimizer, 0, model=model)
        found[kind.__name__] = {"state": state(optimizer), "parameters": parameters(model)}
    return found


def case_parameters(hvd: Any) -> dict[str, Any]:
    """broadcast_parameters of a state dict, of named parameters, of parameters; other types."""
    found: dict[str, Any] = {}
    for root, label in enumerate(("dict", "named", "listed")):
        model = _different(hvd)
        given = {
            "dict": model.state_dict(),
            "named": list(model.named_parameters()),
            "listed": list(model.parameters()),
        }[label]
        hvd.broadcast_parameters(given, root_rank=root % 2)
        found[label] = parameters(model)
    wrong = network().parameters()
    return {**found, "error": error(lambda: hvd.broadcast_parameters(wrong, 0), ValueError)}


def case_parameters_during_training(hvd: Any) -> dict[str, Any]:
    """broadcast_parameters between two steps."""
    model = network()
    optimizer = wrapped(hvd, model)
    train(hvd, model, optimizer, 8)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    train(hvd, model, optimizer, 4, first=8)
    return {"parameters": parameters(model), "state": state(optimizer)}


def case_broadcast_object(hvd: Any) -> dict[str, Any]:
    """broadcast_object of a dict, of a state dict, from another root."""
    model = network()
    optimizer = wrapped(hvd, model)
    train(hvd, model, optimizer, 2)
    optimizer.param_groups[0]["lr"] = 0.5 + hvd.rank()
    mine = {"hello": 123, 0: [1, 2]} if hvd.rank() == 0 else {}
    return {
        "object": hvd.broadcast_object(mine, root_rank=0),
        "root": hvd.broadcast_object(hvd.rank(), root_rank=1, name="root"),
        "state": plain(hvd.broadcast_object(optimizer.state_dict(), root_rank=1)),
    }


def case_allgather_object(hvd: Any) -> dict[str, Any]:
    """allgather_object of what differs in size."""
    mine = {"rank": hvd.rank(), "more": list(range(3 * hvd.rank()))}
    return {"everyone": hvd.allgather_object(mine)}


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)
    main(globals(), "broadcasts")
