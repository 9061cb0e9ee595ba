"""Ways out of a training with messages in flight: an exception, the end, a forgotten optimizer."""

from __future__ import annotations

import gc
import sys
import time
from typing import Any

import torch

import deft_horovod.torch as hvd
from tests.parallel.scripts.failures.failing import (
    caught,
    everybody_equal,
    network,
    train,
    wrapped,
)
from tests.parallel.scripts.late_plans import Late, plan_of, saved
from tests.parallel.scripts.reporting import options, report

APART_S = 0.5  # so that what the first rank sends is still in flight


def started(policy: str) -> tuple[Any, Any]:
    model = network(3, 30, 30, 2)
    optimizer = wrapped(model, policy=policy)
    train(model, optimizer, 3)
    return model, optimizer


def backward(model: Any) -> None:
    if hvd.rank() > 0:
        time.sleep(APART_S)
    model(torch.ones(2, 3)).sum().backward()


def an_exception(policy: str) -> None:
    """In the code of the user, on one rank; nobody catches it."""
    model, optimizer = started(policy)
    if hvd.rank() > 0:
        report(caught(lambda: train(model, optimizer, 1000)))
        return
    backward(model)
    report("sent")
    raise LookupError("a mistake of the user")


def the_end(policy: str) -> None:
    """The program ends between backward() and step()."""
    model, optimizer = started(policy)
    optimizer.flush()  # one rank ends at once, and the other's forward would wait for it
    if hvd.rank() == 0:
        model(torch.ones(2, 3)).sum().backward()
    report("sent")


def held(policy: str) -> None:
    """The program ends after step(), with updates that nobody waited for."""
    model, optimizer = started(policy)
    train(model, optimizer, 1)
    report("stepped")
    sys.exit(0)


def forgotten(_: str) -> None:
    """Optimizers go while their messages are in flight; the job goes on, and is shut down."""
    equal = {policy: go_on_without(policy) for policy in ("bucket", "priority")}
    report({**equal, "shutdown": shut_down()})


def go_on_without(policy: str) -> bool:
    """Whether the next optimizer, of the same names, trains as ever."""
    model, optimizer = started(policy)
    backward(model)
    del model, optimizer
    gc.collect()
    time.sleep(APART_S)
    model, optimizer = started(policy)
    train(model, optimizer, 3)
    optimizer.flush()
    return everybody_equal(model)


def late_by_one(model: Any) -> dict[str, Any]:
    """Options for updates that all come one step late, whatever a link was measured to do."""
    plan = plan_of(model, [Late(delay=1)] * len([*model.parameters()]))
    return {"config": {"plan_file": saved(plan), "correction": "none"}}


def behind(policy: str) -> None:
    """One rank ends first; the other is a step behind, and saves then."""
    model = network(3, *[60] * 6, 2)
    optimizer = wrapped(model, **(late_by_one(model) if policy == "late" else {"policy": policy}))
    train(model, optimizer, 12)
    if hvd.rank() == 0:
        time.sleep(APART_S)
    train(model, optimizer, 1)
    if hvd.rank() == 0:
        time.sleep(APART_S)
        saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        report({"saved": len(saved["model"]), "late": optimizer.stats()["late"]})
    else:
        report({"held": optimizer.stats()["policy"]})


def shut_down() -> bool:
    """Right after step(); then parameters are read: those of both have all updates."""
    model, _optimizer = started("priority")
    other = network(3, 30, 30, 2)
    train(other, wrapped(other, policy="bucket"), 3)
    hvd.shutdown()
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


if __name__ == "__main__":
    hvd.init()
    ways = {"exception": an_exception, "end": the_end, "held": held, "forgotten": forgotten}
    ways |= {"behind": behind}
    ways[options()["how"]](options()["policy"])
