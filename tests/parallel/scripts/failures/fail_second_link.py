"""Training on the second link: the last rank is killed, or late by more than the deadline."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import horovod.torch as stock
import torch

from deft_horovod.runtime.links.second_link import open_second_link
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.reduce.planned import open_link
from tests.parallel.scripts.failures.failing import caught
from tests.parallel.scripts.reporting import options, report
from tests.parallel.scripts.training import Data, loss_of, mlp
from tests.parallel.scripts.two_links import Trainer, reduction_of

STEPS = 4
DEADLINE_S = 8.0
LATE_S = DEADLINE_S + 3.0


def _die(*_: Any) -> None:
    path = Path(os.environ["PARALLEL_RESULTS"]) / "killed"
    path.with_suffix(".tmp").write_text(repr(time.time()))
    path.with_suffix(".tmp").replace(path)
    os.kill(os.getpid(), signal.SIGKILL)


class _Job:
    def __init__(self, both: bool) -> None:
        reduction = reduction_of()
        agreement = Agreement(reduction.process_set, DEADLINE_S)
        second = open_second_link(reduction, "lo", DEADLINE_S, agreement)
        self.model = mlp()
        links = [open_link(reduction), second] if both else [second]
        self.trainer = Trainer(self.model, links, "fail", DEADLINE_S)
        self._data = Data()

    def train(self, steps: int) -> None:
        for _ in range(steps):
            self.model.zero_grad()
            self.trainer.backward(loss_of(self.model, self._data.next()))


def _killed(job: _Job, last: bool) -> dict[str, Any]:
    if last:
        job.model[2].weight.register_post_accumulate_grad_hook(_die)
    error = caught(lambda: job.train(10_000))
    seen_s = time.time()
    killed = Path(os.environ["PARALLEL_RESULTS"]) / "killed"
    return {**error, "killed_s": float(killed.read_text()), "seen_s": seen_s}


def _late(job: _Job, last: bool) -> dict[str, Any]:
    if last:
        time.sleep(LATE_S)
        return caught(lambda: job.train(1))
    error = caught(lambda: job.train(1))
    time.sleep(max(0.0, LATE_S - error["seconds"]) + 2.0)  # its part of the messages still waits
    return error


def main() -> None:
    stock.init()
    torch.set_num_threads(1)
    job = _Job(both=options()["both"])
    job.train(STEPS)
    last = stock.rank() == stock.size() - 1
    report({"killed": _killed, "late": _late}[options()["how"]](job, last))


if __name__ == "__main__":
    main()
