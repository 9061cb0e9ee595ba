"""Ctrl-C while a rank waits for another one."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import torch

import deft_horovod.torch as hvd
from tests.parallel.scripts.failures.failing import caught, everybody_equal, network, train, wrapped
from tests.parallel.scripts.reporting import options, report

LATE_S = 3.0
INTERRUPT_S = 1.0


def _interrupted(action: Any) -> dict[str, Any]:
    timer = threading.Timer(INTERRUPT_S, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    error = caught(action)
    timer.cancel()
    return error


def in_a_step(late: bool, policy: str) -> dict[str, Any]:
    """One rank waits and is interrupted; its part has left, so the late one finds it."""
    model = network(3, 40, 2)
    optimizer = wrapped(model, policy=policy)
    train(model, optimizer, 3)
    if late:
        time.sleep(LATE_S)
        return caught(lambda: train(model, optimizer, 1))
    error = _interrupted(lambda: (train(model, optimizer, 1), model(torch.ones(2, 3))))
    time.sleep(LATE_S - error["seconds"])
    return error


def at_the_agreement(late: bool) -> dict[str, Any]:
    model = network(3, 4, 2)
    optimizer = wrapped(model)
    if not late:
        return _interrupted(lambda: train(model, optimizer, 1))
    time.sleep(LATE_S)
    return {}


def goes_on(policy: str) -> dict[str, Any]:
    model = network(3, 4, 2)
    error = caught(lambda: train(model, wrapped(model, policy=policy), 3))
    return error | {"equal": everybody_equal(model)}


def main() -> None:
    hvd.init()
    late = hvd.rank() == hvd.size() - 1
    found = {}
    for policy in options()["policies"]:
        found[policy] = in_a_step(late, policy)
        found[f"after {policy}"] = goes_on(policy)
        report(found)
    found["agreement"] = at_the_agreement(late)
    report(found)


if __name__ == "__main__":
    main()
