"""Runs scenarios with Horovod's module and with ours, in one job, and compares what comes out."""

from __future__ import annotations

import functools
import gc
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import horovod.torch as stock
import torch

import deft_horovod.torch as ours
from tests.conformance.accepted import ACCEPTED
from tests.conformance.programs import policies_of
from tests.conformance.scripts.outcomes import Outcome, check, in_force
from tests.parallel.scripts.patience import wait_patiently
from tests.parallel.scripts.reporting import chosen, run_cases

Scenario = Callable[[Any], Outcome]

# Several messages even for the smallest model, and large parameters are cut.
_SIZES = {
    "bucket_bytes": 2048,
    "first_bucket_bytes": 1024,
    "partition_bytes": 1024,
    "credit_bytes": 2500,
}


class Ours:
    """Our module, as a script sees it whose optimizers all have one policy."""

    def __init__(self, policy: str) -> None:
        self._policy = policy

    def __getattr__(self, name: str) -> Any:
        return getattr(ours, name)

    def DistributedOptimizer(self, *args: Any, **kwargs: Any) -> Any:  # noqa: N802
        return ours.DistributedOptimizer(*args, policy=self._policy, config=_SIZES, **kwargs)


def _settle() -> None:
    """Optimizers of one run are gone, and nothing of them is on its way, before the next begins."""
    gc.collect()
    if stock.is_initialized():
        stock.barrier()


def _compared(name: str, scenario: Scenario, theirs: Scenario, policy: str) -> None:
    expected = theirs(stock)
    _settle()
    mine = scenario(Ours(policy))
    _settle()
    check(expected, mine, in_force(ACCEPTED.get(name), policy, expected, mine))


def scenario_cases(namespace: Mapping[str, Any], program: str) -> dict[str, Callable[[], None]]:
    """The comparisons of a program, in its order; Horovod's part of each runs once."""
    cases: dict[str, Callable[[], None]] = {}
    for key, scenario in namespace.items():
        if not key.startswith("case_"):
            continue
        name, theirs = key.removeprefix("case_"), functools.cache(scenario)
        full_name = f"{program}.{name}"
        by_policy = "hvd" in inspect.signature(scenario).parameters
        for policy in policies_of(full_name) if by_policy else ("auto",):
            label = f"{name}-{policy}" if by_policy else name
            cases[label] = functools.partial(_compared, full_name, scenario, theirs, policy)
    return cases


def main(namespace: Mapping[str, Any], program: str, *, initialise: bool = True) -> None:
    """Runs the cases of a program."""
    if initialise:
        ours.init()
    torch.set_num_threads(1)
    wait_patiently()
    run_cases(chosen(scenario_cases(namespace, program)))
