"""Names, arguments and attributes of the optimizer."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import torch
from harness import main
from material import (
    backward,
    error,
    network,
    parameters,
    replicas_equal,
    sgd,
    train,
    warned,
    wrapped,
)
from torch import nn


def _named(hvd: Any, names: Any) -> str:
    return error(lambda: hvd.DistributedOptimizer(sgd(network()), names), ValueError)


def _names_of(optimizer: Any, model: nn.Module) -> list[str]:
    known = optimizer._parameter_names
    return [known[p] for p in model.parameters()]


def case_duplicate_names(hvd: Any) -> dict[str, Any]:
    """Two parameters of one name are a ValueError."""
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    names = itertools.chain(first.named_parameters(), second.named_parameters())
    return {"error": error(lambda: hvd.DistributedOptimizer(optimizer, names), ValueError)}


def case_names_without_pairs(hvd: Any) -> dict[str, Any]:
    """named_parameters that are not pairs are a ValueError."""
    model = network()
    make = lambda: hvd.DistributedOptimizer(sgd(model), model.parameters())  # noqa: E731
    return {"error": error(make, ValueError), "names_only": _named(hvd, ["a", "b"])}


def case_half_of_the_names(hvd: Any) -> dict[str, Any]:
    """Names for a part of the parameters are a ValueError."""
    model = network()
    some = list(model.named_parameters())[:3]
    make = lambda: hvd.DistributedOptimizer(sgd(model), some)  # noqa: E731
    return {"error": error(make, ValueError), "empty": _named(hvd, [])}


def case_more_names_than_parameters(hvd: Any) -> dict[str, Any]:
    """Names of parameters that the optimizer does not have do no harm."""
    model = network()
    part = torch.optim.SGD(list(model.parameters())[2:], lr=0.1)
    optimizer = hvd.DistributedOptimizer(part, model.named_parameters())
    train(hvd, model, optimizer, 4)
    return {"parameters": parameters(model)}


def case_names_from_a_generator(hvd: Any) -> dict[str, Any]:
    """named_parameters is read once, so a generator will do; each parameter keeps its name."""
    model = network()
    optimizer = wrapped(hvd, model)
    train(hvd, model, optimizer, 2)
    return {"names": _names_of(optimizer, model), "parameters": parameters(model)}


def case_names_in_any_order(hvd: Any) -> dict[str, Any]:
    """The order of named_parameters may differ between ranks."""
    model = network()
    named = list(model.named_parameters())
    if hvd.rank() == 1:
        named.reverse()
    optimizer = hvd.DistributedOptimizer(sgd(model), named)
    train(hvd, model, optimizer, 4)
    return {"parameters": parameters(model), "replicas_equal": replicas_equal(hvd, model)}


def case_no_names(hvd: Any) -> dict[str, Any]:
    """Without named_parameters training works as with them."""
    model = network()
    optimizer = hvd.DistributedOptimizer(sgd(model))
    train(hvd, model, optimizer)
    return {"parameters": parameters(model)}


def case_made_up_names(hvd: Any) -> dict[str, Any]:
    """Made-up names are unique over all groups, and the same on all ranks."""
    model = network()
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters()}]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(groups, lr=0.1))
    names = list(optimizer._parameter_names.values())
    everyone = hvd.allgather_object(sorted(names))
    return {
        "names": sorted(names),
        "unique": len(names) == len(set(names)),
        "equal_on_all_ranks": all(one == everyone[0] for one in everyone),
    }


def case_passes_below_one(hvd: Any) -> dict[str, Any]:
    """backward_passes_per_step below 1 is a ValueError."""
    return {
        str(passes): error(
            lambda passes=passes: wrapped(hvd, network(), backward_passes_per_step=passes),
            ValueError,
        )
        for passes in (0, -1)
    }


def case_predivide_with_another_op(hvd: Any) -> dict[str, Any]:
    """gradient_predivide_factor with op=Sum is a ValueError."""
    make = lambda: wrapped(hvd, network(), gradient_predivide_factor=2.0, op=hvd.Sum)  # noqa: E731
    return {"error": error(make, ValueError)}


def case_wrong_groups(hvd: Any) -> dict[str, Any]:
    """Groups of no tensors, a tensor in two groups, a number below 1: a ValueError."""
    found = {}
    for label in ("zero", "negative", "not_tensors", "twice"):
        model = network()
        first = next(model.parameters())
        given = {"zero": 0, "negative": -1, "not_tensors": [["a"]], "twice": [[first], [first]]}
        make = lambda model=model, groups=given[label]: wrapped(hvd, model, groups=groups)  # noqa: E731
        found[label] = error(make, ValueError)
    return found


def case_num_groups_is_deprecated(hvd: Any) -> dict[str, Any]:
    """num_groups warns, and means groups."""
    model = network()
    made: list[Any] = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = error(lambda: made.append(wrapped(hvd, model, num_groups=2)), ValueError)
    for optimizer in made:
        train(hvd, model, optimizer, 8)
    categories = [one.category.__name__ for one in seen]
    return {"warnings": categories, "trained": parameters(model) if made else found}


def case_adasum_on_a_process_set(hvd: Any) -> dict[str, Any]:
    """op=Adasum with a process set is a NotImplementedError."""
    every = hvd.add_process_set(list(range(hvd.size()))[:1])
    make = lambda: wrapped(hvd, network(), op=hvd.Adasum, process_set=every)  # noqa: E731
    found = error(make, NotImplementedError)
    hvd.remove_process_set(every)
    return {"error": found}


def case_arguments_by_position(hvd: Any) -> dict[str, Any]:
    """The order of the arguments is Horovod's."""
    model = network()
    optimizer = hvd.DistributedOptimizer(
        sgd(model), model.named_parameters(), hvd.Compression.fp16, 2, hvd.Average, 2.0
    )
    for step in range(4):
        optimizer.zero_grad()
        backward(hvd, model, 2 * step)
        backward(hvd, model, 2 * step + 1)
        optimizer.step()
    return {"parameters": parameters(model)}


def case_attributes(hvd: Any) -> dict[str, Any]:
    """What a script can ask the optimizer for: its arguments, under Horovod's names."""
    optimizer = wrapped(hvd, network(), backward_passes_per_step=3, gradient_predivide_factor=2.0)
    absent = "(absent)"
    return {
        "backward_passes_per_step": optimizer.backward_passes_per_step,
        "op": getattr(optimizer, "op", absent),
        "gradient_predivide_factor": getattr(optimizer, "gradient_predivide_factor", absent),
        "sparse_as_dense": getattr(optimizer, "sparse_as_dense", absent),
        "process_set": getattr(optimizer, "process_set", absent) == hvd.global_process_set,
        "compression": getattr(optimizer, "_compression", absent) == hvd.Compression.none,
    }


def case_no_warnings(hvd: Any) -> dict[str, Any]:
    """Making the optimizer and training with it warns of nothing."""
    model = network()

    def run() -> None:
        train(hvd, model, wrapped(hvd, model))

    return {"warnings": warned(run)}


def case_warnings_as_errors(hvd: Any) -> dict[str, Any]:
    """A script that makes all warnings errors trains."""
    model = network()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(hvd, model, wrapped(hvd, model))
    return {"parameters": parameters(model)}


if __name__ == "__main__":
    main(globals(), "construction")
