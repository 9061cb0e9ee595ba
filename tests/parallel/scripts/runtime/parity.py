"""Trains twins, one with our optimizer and one with Horovod's, and reports how far they part."""

from __future__ import annotations

import functools
from typing import Any

import horovod.torch as stock
import torch
from torch import nn

import deft_horovod.torch as hvd
from tests.parallel.scripts import launched
from tests.parallel.scripts.parity_cases import PROFILED_STEPS, RIVALS, STEPS, Case, cases_at
from tests.parallel.scripts.patience import wait_patiently
from tests.parallel.scripts.reporting import run_cases
from tests.parallel.scripts.training import Data, equal_on_all_ranks, loss_of, make_model

# Small enough that even these models make several messages, and large parameters are cut.
SIZES = {
    "bucket_bytes": 2048,
    "first_bucket_bytes": 1024,
    "partition_bytes": 1024,
    "credit_bytes": 2500,
}
# A profile of a few steps, and sizes as above instead of those that it would suggest.
QUICK_PROFILE = {
    "profile_warmup_steps": 1,
    "profile_steps": PROFILED_STEPS - 1,
    "probe_s": 0.05,
    "tune": False,
}


def process_sets(np: int) -> dict[str, list[Any]]:
    """By name; of each, this rank is in at most one."""
    if np == 2:
        return {"first": [stock.ProcessSet([0])]}
    if np == 3:
        return {"pair": [stock.ProcessSet([0, 2])]}
    return {"parity": [stock.ProcessSet([0, 2]), stock.ProcessSet([1, 3])]}


def inner_optimizer(case: Case, model: nn.Module) -> torch.optim.Optimizer:
    """Two parameter groups with different options.

    All decay: the bias of a convolution before batch normalization has no gradient but rounding,
    which on some processors is too little to change it.
    """
    parameters = list(model.parameters())
    groups = [
        {"params": parameters[:2], "lr": 0.01, "weight_decay": 0.01},
        {"params": parameters[2:], "weight_decay": 0.001},
    ]
    if case.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=0.02, momentum=0.9)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[case.optimizer]
    # The larger eps keeps an update continuous in its gradient: with 1e-8 a gradient that is all
    # rounding is blown up to a full step, and sums in another order are not comparable.
    return kind(groups, lr=0.005, eps=1e-3)


def arguments(case: Case, model: nn.Module, sets: dict[str, list[Any]]) -> dict[str, Any]:
    """Those of the stock signature."""
    made: dict[str, Any] = {
        "compression": getattr(stock.Compression, case.compression),
        "backward_passes_per_step": case.passes,
        "op": getattr(stock, case.op),
        "gradient_predivide_factor": case.predivide,
    }
    parameters = list(model.parameters())
    if case.groups == "2":
        made["groups"] = 2
    elif case.groups == "lists":
        made["groups"] = [[parameters[0], parameters[-1]], [parameters[2], parameters[1]]]
    if case.ranks != "all":
        candidates = sets[case.ranks]
        mine = [s for s in candidates if s.included()]
        made["process_set"] = (mine or candidates)[0]
    return made


def moved(model: nn.Module, kind: str) -> bool:
    """Whether every parameter has been trained."""
    start = make_model(kind).parameters()
    return not any(torch.equal(a, b) for a, b in zip(model.parameters(), start, strict=True))


def distance(ours: nn.Module, theirs: nn.Module) -> tuple[bool, float]:
    """Whether all bits are equal, and the largest difference relative to a tensor's largest
    element (at least 1)."""
    equal, largest = True, 0.0
    both = zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True)
    for a, b in both:
        equal = equal and torch.equal(a, b)
        scale = max(1.0, b.abs().max().item())
        largest = max(largest, (a - b).abs().max().item() / scale)
    return equal, largest


def train(case: Case, number: int, sets: dict[str, list[Any]]) -> dict[str, Any]:
    """Both, step by step on the same data."""
    ours, theirs = make_model(case.model), make_model(case.model)
    more: dict[str, Any] = QUICK_PROFILE if case.policy in RIVALS else {}
    if case.policy == "auto":
        more = {"accuracy": "exact"}
    optimizer = hvd.DistributedOptimizer(
        inner_optimizer(case, ours),
        named_parameters=ours.named_parameters(),
        policy=case.policy,
        config={**SIZES, **more},
        **arguments(case, ours, sets),
    )
    reference = stock.DistributedOptimizer(
        inner_optimizer(case, theirs),
        # Names of their own, so that no case meets another's cached responses.
        named_parameters=[(f"{number}.{name}", p) for name, p in theirs.named_parameters()],
        **arguments(case, theirs, sets),
    )
    data = Data(case.model)
    losses_equal, replicas_equal, largest_loss_gap = True, True, 0.0
    for step in range(STEPS):
        batches = [data.next() for _ in range(case.passes)]
        losses = []
        for model, opt in ((ours, optimizer), (theirs, reference)):
            opt.zero_grad()
            for batch in batches:
                loss = loss_of(model, batch)
                loss.backward()
                losses.append(loss.item())
            opt.step()
        for a, b in zip(losses[: case.passes], losses[case.passes :], strict=True):
            losses_equal = losses_equal and a == b
            largest_loss_gap = max(largest_loss_gap, abs(a - b))
        if (step + 1) % case.sync_every == 0:
            optimizer.flush()
            if case.ranks == "all":
                replicas_equal = replicas_equal and equal_on_all_ranks(ours.parameters())
    optimizer.flush()
    stock.barrier()  # ranks outside of a process set do not run ahead and leave
    equal, apart = distance(ours, theirs)
    return {
        "losses_equal": losses_equal,
        "loss_gap": largest_loss_gap,
        "replicas_equal": replicas_equal,
        "equal": equal,
        "apart": apart,
        "trained": moved(ours, case.model),
        "stats": optimizer.stats(),
    }


def main() -> None:
    np = launched.size()
    sets = process_sets(np)
    hvd.init(process_sets=[s for group in sets.values() for s in group])
    torch.set_num_threads(1)
    wait_patiently()
    run_cases(
        {
            case.name: functools.partial(train, case, number, sets)
            for number, case in enumerate(cases_at(np))
        }
    )


if __name__ == "__main__":
    main()
