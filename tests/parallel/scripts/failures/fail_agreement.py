"""Ranks that differ in one thing after the other. The job survives each error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import deft_horovod.torch as hvd
from tests.parallel.scripts.failures.failing import (
    SMALL,
    caught,
    everybody_equal,
    network,
    train,
    wrapped,
)
from tests.parallel.scripts.reporting import report


def _models(different: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """By case: model and options of this rank."""

    def case(model: Any, **options: Any) -> dict[str, Any]:
        return {"model": model, "options": options}

    def named() -> dict[str, Any]:
        model = network(3, 4, 2)
        listed = [(f"m.{name}", p) for name, p in model.named_parameters()]
        if different:
            listed[2] = ("m.another", listed[2][1])
        return case(model, named_parameters=listed)

    def dtype() -> dict[str, Any]:
        model = network(3, 4, 2)
        return case(model.double() if different else model)

    def frozen() -> dict[str, Any]:
        model = network(3, 4, 2)
        model[1].bias.requires_grad_(not different)
        return case(model)

    def grouped() -> dict[str, Any]:
        return case(network(3, 4, 2), policy="stock", groups=2 if different else 3)

    def passes() -> dict[str, Any]:
        return case(network(3, 4, 2), backward_passes_per_step=2 if different else 1)

    def compressed() -> dict[str, Any]:
        kinds = hvd.Compression
        return case(network(3, 4, 2), compression=kinds.fp16 if different else kinds.none)

    def configured() -> dict[str, Any]:
        config = SMALL | {"bucket_bytes": 2048 if different else 4096}
        return case(network(3, 4, 2), config=config)

    return {
        "shape": lambda: case(network(3, 4, 3 if different else 2)),
        "name": named,
        "dtype": dtype,
        "more": lambda: case(network(3, 4, 2, *([2] if different else []))),
        "frozen": frozen,
        "policy": lambda: case(network(3, 4, 2), policy="wfbp" if different else "priority"),
        "config": configured,
        "compression": compressed,
        "passes": passes,
        "groups": grouped,
        "operation": lambda: case(network(3, 4, 2), op=hvd.Sum if different else hvd.Average),
        "predivision": lambda: case(
            network(3, 4, 2), gradient_predivide_factor=2.0 if different else 1.0
        ),
    }


def _later(policy: str, different: bool) -> dict[str, Any]:
    """The ranks agree at first; then one freezes a parameter."""
    model = network(3, 4, 2)
    optimizer = wrapped(model, policy=policy)
    train(model, optimizer, 3)
    model[0].bias.requires_grad_(not different)
    return caught(lambda: train(model, optimizer, 5))


def main() -> None:
    hvd.init()
    different = hvd.rank() == hvd.size() - 1
    found = {}
    for name, make in _models(different).items():
        made = make()
        optimizer = wrapped(made["model"], **made["options"])
        found[name] = caught(lambda m=made["model"], o=optimizer: train(m, o))
        report(found)
    for policy in ("bucket", "priority"):
        found[f"later {policy}"] = _later(policy, different)
        report(found)
    for policy in ("bucket", "priority", "stock"):
        model = network(3, 4, 2)
        error = caught(lambda m=model, p=policy: train(m, wrapped(m, policy=p), 3))
        found[f"after all {policy}"] = error | {"equal": everybody_equal(model)}
        report(found)


if __name__ == "__main__":
    main()
