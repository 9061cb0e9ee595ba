"""What the optimizer says before Horovod is initialised."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from harness import main
from material import error, network, sgd, wrapped
from torch import nn


def case_duplicate_names(hvd: Any) -> dict[str, Any]:
    """Two parameters of one name are a ValueError."""
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    names = itertools.chain(first.named_parameters(), second.named_parameters())
    return {"error": error(lambda: hvd.DistributedOptimizer(optimizer, names), ValueError)}


def case_unnamed_parameters(hvd: Any) -> dict[str, Any]:
    """A parameter without a name beside named ones is a ValueError."""
    model = network()
    some = list(model.named_parameters())[:1]
    return {"error": error(lambda: hvd.DistributedOptimizer(sgd(model), some), ValueError)}


def case_passes_below_one(hvd: Any) -> dict[str, Any]:
    """backward_passes_per_step=0 is a ValueError."""
    make = lambda: wrapped(hvd, network(), backward_passes_per_step=0)  # noqa: E731
    return {"error": error(make, ValueError)}


def case_valid_arguments(hvd: Any) -> dict[str, Any]:
    """Valid arguments fail too: Horovod has to be initialised first, a ValueError."""
    return {"error": error(lambda: wrapped(hvd, network()), ValueError)}


if __name__ == "__main__":
    main(globals(), "before_init", initialise=False)
