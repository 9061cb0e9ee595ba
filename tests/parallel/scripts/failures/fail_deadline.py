"""The last rank is late for a step, by more than the deadline; then it never agrees."""

from __future__ import annotations

import time
from typing import Any

import torch

import deft_horovod.torch as hvd
from tests.parallel.scripts.failures.failing import caught, network, train, wrapped
from tests.parallel.scripts.reporting import options, report

STEPS = 3
LATE_S = 4.5


def late_step(late: bool, policy: str) -> dict[str, Any]:
    """One rank waits in vain; the late one comes at last and finds what the other had sent."""
    model = network(3, 40, 2)
    optimizer = wrapped(model, policy=policy)
    train(model, optimizer, STEPS)
    if late:
        time.sleep(LATE_S)
        return caught(lambda: train(model, optimizer, 1))
    # With gates the waiting is in the next forward.
    error = caught(lambda: (train(model, optimizer, 1), model(torch.ones(2, 3))))
    time.sleep(max(0.0, LATE_S - error["seconds"]) + 0.5)
    return error


def never_agrees(late: bool) -> dict[str, Any]:
    model = network(3, 4, 2)
    optimizer = wrapped(model)
    if not late:
        return caught(lambda: train(model, optimizer, 1))
    time.sleep(LATE_S)
    return {}


def main() -> None:
    hvd.init()
    late = hvd.rank() == hvd.size() - 1
    found = {}
    for policy in options()["policies"]:
        found[policy] = late_step(late, policy)
        report(found)
    found["never agrees"] = never_agrees(late)
    report(found)


if __name__ == "__main__":
    main()
