"""Rank 1 dies in the middle of training; the others say what they get."""

from __future__ import annotations

import os
import time

import torch
import torch.distributed as dist

from deft_horovod.distributed import DistributedOptimizer
from tests.parallel.scripts.reporting import options, report


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = DistributedOptimizer(optimizer, model, policy=options()["policy"])
    began_s = time.monotonic()
    try:
        for step in range(50):
            if dist.get_rank() == 1 and step == 5:
                os._exit(3)
            optimizer.zero_grad()
            model(torch.randn(4, 64)).sum().backward()
            optimizer.step()
            began_s = time.monotonic()
    except dist.DistBackendError as error:
        report({"said": str(error), "took_s": time.monotonic() - began_s})
    os._exit(1)


if __name__ == "__main__":
    main()
