"""The last rank is killed in the middle of training; the others report what they see."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import torch

import deft_horovod.torch as hvd
from tests.parallel.scripts.failures.failing import caught, network, train, wrapped
from tests.parallel.scripts.reporting import options, report

FATAL_STEP = 4


def _die(*_: Any) -> None:
    path = Path(os.environ["PARALLEL_RESULTS"]) / "killed"
    path.with_suffix(".tmp").write_text(repr(time.time()))
    path.with_suffix(".tmp").replace(path)
    os.kill(os.getpid(), signal.SIGKILL)


def _die_later(seed: int) -> None:
    """At a moment that has nothing to do with what the training loop does."""
    threading.Timer(random.Random(seed).uniform(0.0, 1.5), _die).start()


def _prepare_to_die(where: str, model: torch.nn.Module) -> None:
    if where == "backward":  # when some gradients have left, and others are still to come
        model[2].weight.register_post_accumulate_grad_hook(_die)
    elif where == "forward":  # with gates: when some parameters are updated, and others not
        model[1].register_forward_pre_hook(_die)
    elif where.startswith("random"):
        _die_later(int(where.removeprefix("random")))
    else:
        raise ValueError(where)


def main() -> None:
    hvd.init()
    model = network(3, 30, 30, 30, 2)
    optimizer = wrapped(model, policy=options()["policy"])
    train(model, optimizer, FATAL_STEP)
    if hvd.rank() == hvd.size() - 1:
        _prepare_to_die(options()["where"], model)
    error = caught(lambda: train(model, optimizer, 10_000))
    seen_s = time.time()
    killed = Path(os.environ["PARALLEL_RESULTS"]) / "killed"
    report({**error, "killed_s": float(killed.read_text()), "seen_s": seen_s})


if __name__ == "__main__":
    main()
