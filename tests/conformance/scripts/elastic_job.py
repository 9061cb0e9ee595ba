"""An elastic training whose hosts and ranks come and go; rank 0 notes each epoch in a file."""

from __future__ import annotations

import importlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import torch
from material import network

from tests.parallel.scripts.reporting import options

EPOCHS, BATCHES, LR, NOTIFIED_WITHIN_S = 3, 6, 0.01, 60


def _may_fail(epoch: int, batch: int, started_as: int) -> None:
    """A rank fails by its number at its start, so a rank that came later never does."""
    if batch != 2 or started_as not in options()["fails"].get(str(epoch), []):
        return
    if options()["how"] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise RuntimeError("injected")


def _note(hvd: Any, state: Any, started_as: int) -> None:
    line = {
        "epoch": state.epoch,
        "started_as": started_as,
        "rank": hvd.rank(),
        "size": hvd.size(),
        "host": os.environ["HOROVOD_HOSTNAME"],
        "rendezvous": state.rendezvous,
        "commits": state.commits,
    }
    with Path(options()["notes"]).open("a") as notes:
        notes.write(json.dumps(line) + "\n")


def _wait_for_other_hosts(state: Any) -> None:
    """Until the launcher has told that they changed."""
    deadline_s = time.monotonic() + NOTIFIED_WITHIN_S
    while state._host_messages.empty():
        if time.monotonic() > deadline_s:
            raise TimeoutError("the launcher told of no other hosts")
        time.sleep(0.05)


def main() -> None:
    hvd = importlib.import_module(options()["module"])
    hvd.init()
    started_as = int(os.environ["HOROVOD_RANK"])
    model = network()
    extra = {"policy": options()["policy"]} if options()["policy"] else {}
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=LR * hvd.size()),
        named_parameters=model.named_parameters(),
        **extra,
    )

    @hvd.elastic.run
    def train(state: Any) -> None:
        state.rendezvous += 1
        while state.epoch < EPOCHS:
            while state.batch < BATCHES:
                _may_fail(state.epoch, state.batch, started_as)
                optimizer.zero_grad()
                model(torch.ones(4, 7)).pow(2).mean().backward()
                optimizer.step()
                state.batch += 1
                state.commits += 1
                state.commit()
            if hvd.rank() == 0:
                _note(hvd, state, started_as)
                if state.epoch in options()["changes"]:
                    _wait_for_other_hosts(state)
            state.epoch += 1
            state.batch = 0
            state.commits += 1
            state.commit()

    def fit_rate() -> None:
        for group in optimizer.param_groups:
            group["lr"] = LR * hvd.size()

    state = hvd.elastic.TorchState(model, optimizer, batch=0, epoch=0, commits=0, rendezvous=0)
    state.register_reset_callbacks([fit_rate])
    train(state)


if __name__ == "__main__":
    main()
