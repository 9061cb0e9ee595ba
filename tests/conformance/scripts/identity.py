"""The optimizer as an object: its class, what it shares with the user's, copies, hooks."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import torch
from harness import main
from material import (
    backward,
    error,
    network,
    options,
    parameters,
    sgd,
    state,
    train,
    trained,
    warned,
    wrapped,
)


def case_class(hvd: Any) -> dict[str, Any]:
    """An instance of torch's Optimizer and of the user's class, under that class's name."""
    optimizer = wrapped(hvd, network())
    return {
        "torch_optimizer": isinstance(optimizer, torch.optim.Optimizer),
        "users_class": isinstance(optimizer, torch.optim.SGD),
        "another_class": isinstance(optimizer, torch.optim.Adam),
        "subclass": issubclass(type(optimizer), torch.optim.SGD),
        "class_name": optimizer.__class__.__name__,
        "type_name": type(optimizer).__name__,
        "repr": repr(optimizer).split("\n")[0],
    }


class _Counting(torch.optim.SGD):
    """A class of the user's own, with a step() and a method of its own."""

    answer = 42

    def __init__(self, params: Any, lr: float = 0.05) -> None:
        super().__init__(params, lr=lr)
        self.calls = 0

    def step(self, closure: Any = None) -> Any:
        self.calls += 1
        return super().step(closure)

    def ask(self) -> int:
        return self.answer + 1


def case_class_of_the_users(hvd: Any) -> dict[str, Any]:
    """Attributes and methods of a user's class; its own step() is called once a step."""
    model = network()
    try:
        optimizer = wrapped(hvd, model, _Counting(model.parameters()))
    except ValueError:
        return {"trained": "ValueError"}
    train(hvd, model, optimizer, 12)
    found = {
        "name": optimizer.__class__.__name__,
        "answer": optimizer.answer,
        "ask": optimizer.ask(),
        "calls": optimizer.calls,
        "parameters": parameters(model),
    }
    return {"trained": found}


def case_class_with_arguments(hvd: Any) -> dict[str, Any]:
    """A user's class whose constructor has arguments without a default."""

    class Scaled(torch.optim.SGD):
        def __init__(self, params: Any, scale: float) -> None:
            super().__init__(params, lr=0.1 * scale)

    model = network()
    made = error(lambda: wrapped(hvd, model, Scaled(model.parameters(), 0.5)), TypeError)
    return {"error": made}


def case_attributes_set_by_hand(hvd: Any) -> dict[str, Any]:
    """A script may hang attributes on the optimizer."""
    optimizer = wrapped(hvd, network())
    optimizer.note = "mine"
    return {
        "note": optimizer.note,
        "unknown": error(lambda: optimizer.nothing_of_this_name, AttributeError),
        "has": hasattr(optimizer, "note"),
    }


def case_groups_shared_with_the_users(hvd: Any) -> dict[str, Any]:
    """A rate set on the user's own optimizer is the wrapper's, and the reverse."""
    model = network()
    inner = sgd(model)
    optimizer = wrapped(hvd, model, inner)
    inner.param_groups[0]["lr"] = 0.3
    seen = [optimizer.param_groups[0]["lr"]]
    optimizer.param_groups[0]["lr"] = 0.4
    seen.append(inner.param_groups[0]["lr"])
    train(hvd, model, optimizer, 3)
    return {"rates": seen, "options": options(optimizer), "parameters": parameters(model)}


def case_state_from_before_wrapping(hvd: Any) -> dict[str, Any]:
    """An optimizer that has state already, when it is wrapped."""
    model = network()
    inner = sgd(model)
    model(torch.ones(2, 7)).pow(2).mean().backward()
    inner.step()
    optimizer = wrapped(hvd, model, inner)
    return {"kept": [entry is not None for entry in state(optimizer)]}


def case_defaults(hvd: Any) -> dict[str, Any]:
    """The options that a group added later gets."""
    optimizer = wrapped(hvd, network())
    return {"keys": sorted(optimizer.defaults), "rate": optimizer.defaults["lr"]}


def case_groups_with_options(hvd: Any) -> dict[str, Any]:
    """Groups with options of their own."""
    model = network()
    groups = [
        {"params": model[0].parameters(), "lr": 0.01},
        {"params": [*model[2].parameters(), *model[4].parameters()], "momentum": 0.5},
    ]
    optimizer = wrapped(hvd, model, torch.optim.SGD(groups, lr=0.1, weight_decay=0.1))
    train(hvd, model, optimizer)
    return trained(hvd, model, optimizer, options=options(optimizer))


def case_added_group(hvd: Any) -> dict[str, Any]:
    """add_param_group() during training: are the new gradients averaged?"""
    model = network()
    named = list(model.named_parameters())
    inner = torch.optim.SGD([p for _, p in named[:4]], lr=0.05)
    optimizer = hvd.DistributedOptimizer(inner, named[:4])
    train(hvd, model, optimizer, 4)
    optimizer.add_param_group({"params": [p for _, p in named[4:]], "lr": 0.05})
    train(hvd, model, optimizer, 4, first=4)
    mine = trained(hvd, model, optimizer)
    return {
        "groups": len(optimizer.param_groups),
        "rates": [group["lr"] for group in optimizer.param_groups],
        "replicas_equal": mine["replicas_equal"],
    }


def case_pickle(hvd: Any) -> dict[str, Any]:
    """pickle of the optimizer."""
    model = network()
    optimizer = wrapped(hvd, model)
    train(hvd, model, optimizer, 3)
    return {"error": error(lambda: pickle.dumps(optimizer), pickle.PicklingError, AttributeError)}


def case_deepcopy(hvd: Any) -> dict[str, Any]:
    """A deep copy trains on."""
    model = network()
    optimizer = wrapped(hvd, model)
    train(hvd, model, optimizer, 3)
    pair = copy.deepcopy((model, optimizer))
    return {
        "error": error(lambda: train(hvd, *pair, 3), AttributeError),
        "parameters": parameters(model),
        "state": state(optimizer),
    }


def case_state_dict(hvd: Any) -> dict[str, Any]:
    """state_dict() is torch's: its keys, and it loads into an optimizer without Horovod."""
    model = network()
    optimizer = wrapped(hvd, model, torch.optim.Adam(model.parameters(), lr=0.01))
    train(hvd, model, optimizer, 10)
    held = optimizer.state_dict()
    again = torch.optim.Adam(network().parameters())
    again.load_state_dict(held)
    return {"keys": sorted(held), "state": state(optimizer), "loaded": state(again)}


def case_checkpoint(hvd: Any) -> dict[str, Any]:
    """Training goes on from a checkpoint of model and optimizer as if it had not stopped."""
    model = network()
    optimizer = wrapped(hvd, model)
    train(hvd, model, optimizer, 10)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    found = torch.load(io.BytesIO(file.getvalue()))
    other = network(5)
    resumed = wrapped(hvd, other)
    other.load_state_dict(found["model"])
    resumed.load_state_dict(found["optimizer"])
    train(hvd, other, resumed, 10, first=10)
    return trained(hvd, other, resumed, options=options(resumed))


def case_loading_between_backward_and_step(hvd: Any) -> dict[str, Any]:
    """load_state_dict() after backward(): training starts over from it."""
    model = network()
    optimizer = wrapped(hvd, model)
    train(hvd, model, optimizer, 4)
    held = copy.deepcopy(optimizer.state_dict())
    optimizer.zero_grad()
    backward(hvd, model, 4)
    optimizer.synchronize()
    optimizer.load_state_dict(held)
    train(hvd, model, optimizer, 4, first=5)
    return trained(hvd, model, optimizer)


def case_step_hooks(hvd: Any) -> dict[str, Any]:
    """Hooks of step(), registered on the wrapper."""
    model = network()
    optimizer = wrapped(hvd, model)
    calls: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    train(hvd, model, optimizer, 2)
    return {"calls": calls, "parameters": parameters(model)}


def case_state_dict_hooks(hvd: Any) -> dict[str, Any]:
    """Hooks of state_dict() and load_state_dict(), registered on the wrapper."""
    optimizer = wrapped(hvd, network())
    calls: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda *_: calls.append("before saving"))
    optimizer.register_state_dict_post_hook(lambda *_: calls.append("after saving"))
    optimizer.register_load_state_dict_pre_hook(lambda *_: calls.append("before loading"))
    optimizer.register_load_state_dict_post_hook(lambda *_: calls.append("after loading"))
    optimizer.load_state_dict(optimizer.state_dict())
    return {"calls": calls}


def _with_scheduler(hvd: Any, make: Any, *, metric: bool = False) -> dict[str, Any]:
    model = network()
    optimizer = wrapped(hvd, model)
    scheduler = make(optimizer)
    rates = []

    def run() -> None:
        for step in range(10):
            train(hvd, model, optimizer, 1, first=step)
            scheduler.step(1.0) if metric else scheduler.step()
            rates.append(optimizer.param_groups[0]["lr"])

    return {"warnings": warned(run), "rates": rates, "parameters": parameters(model)}


def case_schedulers(hvd: Any) -> dict[str, Any]:
    """Learning rate schedulers on the wrapper: rates, warnings, trained parameters."""
    of = torch.optim.lr_scheduler
    return {
        "StepLR": _with_scheduler(hvd, lambda o: of.StepLR(o, 3, 0.5)),
        "LambdaLR": _with_scheduler(hvd, lambda o: of.LambdaLR(o, lambda n: 1 / (1 + n))),
        "OneCycleLR": _with_scheduler(hvd, lambda o: of.OneCycleLR(o, 0.1, total_steps=12)),
        "CosineAnnealingLR": _with_scheduler(hvd, lambda o: of.CosineAnnealingLR(o, 10)),
        "ReduceLROnPlateau": _with_scheduler(
            hvd, lambda o: of.ReduceLROnPlateau(o, patience=1), metric=True
        ),
    }


def case_scheduler_before_step(hvd: Any) -> dict[str, Any]:
    """torch warns where a scheduler steps before the optimizer."""
    optimizer = wrapped(hvd, network())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    return {"warnings": warned(scheduler.step)}


def case_names_of_the_module(module: Any) -> dict[str, Any]:
    """Everything that horovod.torch offers; what is not about the optimizer is the same object."""
    import horovod.torch as stock

    names = [name for name in dir(stock) if not name.startswith("_")]
    same = ("SyncBatchNorm", "Compression", "allreduce", "broadcast_parameters", "rank", "size")
    return {
        "missing": [name for name in names if not hasattr(module, name)],
        "other": [name for name in same if getattr(module, name) is not getattr(stock, name)],
    }


if __name__ == "__main__":
    main(globals(), "identity")
