"""Arguments and calls that are refused. Nothing of it needs another rank to be noticed."""

from __future__ import annotations

import os
from typing import Any

import torch

import deft_horovod.torch as hvd
from tests.parallel.scripts.failures.failing import caught, everybody_equal, network, train, wrapped
from tests.parallel.scripts.reporting import report


def _make(**options: Any) -> Any:
    return lambda: wrapped(network(3, 4, 2), **options)


def _named(change: Any) -> Any:
    """With named_parameters changed by a function on the list of pairs."""

    def make() -> Any:
        model = network(3, 4, 2)
        return wrapped(model, named_parameters=change(list(model.named_parameters())))

    return make


def _lbfgs() -> None:
    model = network(3, 4, 2)
    inner = torch.optim.LBFGS(model.parameters())
    optimizer = hvd.DistributedOptimizer(
        inner, named_parameters=model.named_parameters(), policy="priority"
    )

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(2, 3)).pow(2).mean()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)


def _environment(variables: dict[str, str]) -> Any:
    def make() -> Any:
        os.environ.update(variables)
        try:
            return wrapped(network(3, 4, 2), config=None)
        finally:
            for name in variables:
                del os.environ[name]

    return make


def _skip_without_synchronize() -> None:
    model = network(3, 4, 2)
    optimizer = wrapped(model)
    train(model, optimizer, 2)
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    try:
        with optimizer.skip_synchronize():
            optimizer.step()
    finally:
        optimizer.zero_grad()
        train(model, optimizer, 1)


def _too_many_passes(steps_before: int, policy: str = "bucket") -> Any:
    def run() -> None:
        model = network(3, 4, 2)
        optimizer = wrapped(model, backward_passes_per_step=2, policy=policy)
        for _ in range(steps_before):
            for _ in range(2):
                model(torch.ones(2, 3)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        for _ in range(3):
            model(torch.ones(2, 3)).sum().backward()

    return run


def _process_set_of_one() -> None:
    only = hvd.add_process_set([0])
    try:
        wrapped(network(3, 4, 2), op=hvd.Adasum, process_set=only)
    finally:
        hvd.remove_process_set(only)


def _cases() -> dict[str, Any]:
    return {
        "missing": _named(lambda pairs: pairs[:-1]),
        "duplicate": _named(lambda pairs: [("same", p) for _, p in pairs]),
        "unnamed": _named(lambda pairs: [p for _, p in pairs]),
        "option": _make(config={"bucket_byte": 4096}),
        "policy": _make(policy="prioritty"),
        "values": _make(config={"bucket_bytes": "1XB", "deadline_s": -1, "verbose": "perhaps"}),
        "environment": _environment({"DEFT_POLICY": "none", "DEFT_DEADLINE": "5"}),
        "two policies": _make(policy="wfbp", config={"policy": "bucket"}),
        "groups with priority": _make(policy="priority", groups=2),
        "groups": _make(groups="all"),
        "num_groups with priority": _make(policy="priority", num_groups=2),
        "LBFGS with priority": _lbfgs,
        "Adasum with a process set": _process_set_of_one,
        "predivision of a sum": _make(op=hvd.Sum, gradient_predivide_factor=2.0),
        "no passes": _make(backward_passes_per_step=0),
        "no passes later": lambda: _make()().set_backward_passes_per_step(-1),
        "skip": _skip_without_synchronize,
        "passes in the first step": _too_many_passes(0),
        "passes in a later step": _too_many_passes(2),
        "passes, stock": _too_many_passes(2, "stock"),
        "passes, priority": _too_many_passes(2, "priority"),
    }


def main() -> None:
    found = {"not initialised": caught(_make())}
    hvd.init()
    for name, action in _cases().items():
        found[name] = caught(action)
        report(found)
    model = network(3, 4, 2)
    found["after all"] = caught(lambda: train(model, wrapped(model), 3))
    found["after all"]["equal"] = everybody_equal(model)
    report(found)


if __name__ == "__main__":
    main()
