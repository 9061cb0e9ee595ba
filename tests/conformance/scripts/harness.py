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
from tests.conformance.accepted import ACCEPTED, Difference
from tests.conformance.programs import POLICIES
from tests.parallel.scripts.patience import wait_patiently
from tests.parallel.scripts.reporting import chosen, run_cases

Outcome = Mapping[str, Any]
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


def differences(theirs: Any, mine: Any, where: str = "") -> list[str]:
    """Where two outcomes differ, one line for each place."""
    if isinstance(theirs, Mapping) and isinstance(mine, Mapping):
        found = []
        for key in [*theirs, *(key for key in mine if key not in theirs)]:
            place = f"{where}.{key}" if where else str(key)
            found += differences(theirs.get(key, "(no such key)"), mine.get(key), place)
        return found
    same = type(theirs) is type(mine) and theirs == mine
    return [] if same else [f"{where}: Horovod {theirs!r}, ours {mine!r}"]


def check(theirs: Outcome, mine: Outcome, accepted: Difference | None) -> None:
    """Equal but for what is accepted; that has to be exactly as the table says, and different.

    Raises:
        AssertionError: shows both sides of everything that is not so.
    """
    excepted = accepted.ours if accepted is not None else {}
    wrong = differences(
        {key: value for key, value in theirs.items() if key not in excepted},
        {key: value for key, value in mine.items() if key not in excepted},
    )
    for key, expected in excepted.items():
        if mine[key] != expected:
            wrong.append(f"{key}: the table says ours gives {expected!r}, it gave {mine[key]!r}")
        if theirs[key] == mine[key]:
            wrong.append(f"{key}: equal to Horovod's now, {mine[key]!r}; the table says it differs")
    assert not wrong, "\n".join(wrong)


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
    accepted = ACCEPTED.get(name)
    if accepted is not None and policy in accepted.sometimes:
        accepted = accepted if differences(expected, mine) else None
    elif accepted is not None and policy not in accepted.policies:
        accepted = None
    check(expected, mine, accepted)


def scenario_cases(namespace: Mapping[str, Any], program: str) -> dict[str, Callable[[], None]]:
    """The comparisons of a program, in its order; Horovod's part of each runs once."""
    cases: dict[str, Callable[[], None]] = {}
    for key, scenario in namespace.items():
        if not key.startswith("case_"):
            continue
        name, theirs = key.removeprefix("case_"), functools.cache(scenario)
        by_policy = "hvd" in inspect.signature(scenario).parameters
        for policy in POLICIES if by_policy else ("auto",):
            label = f"{name}-{policy}" if by_policy else name
            cases[label] = functools.partial(
                _compared, f"{program}.{name}", scenario, theirs, policy
            )
    return cases


def main(namespace: Mapping[str, Any], program: str, *, initialise: bool = True) -> None:
    """Runs the cases of a program."""
    if initialise:
        ours.init()
    torch.set_num_threads(1)
    wait_patiently()
    run_cases(chosen(scenario_cases(namespace, program)))
