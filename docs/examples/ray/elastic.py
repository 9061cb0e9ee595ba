"""Elastic training by Horovod's RayExecutor: a worker that dies comes back, and none is needed.

python docs/examples/ray/elastic.py
"""

from __future__ import annotations

import os
import signal

import ray, logging; logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(message)s")
from horovod.ray import RayExecutor


def train(steps, marker):
    """On every worker, so what it needs is imported here."""
    import torch

    import deft_horovod.torch as hvd

    hvd.init()
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters()
    )
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0)
    sizes = []

    @hvd.elastic.run
    def loop(state):
        while state.step < steps:
            inputs = torch.randn(16, 8)
            optimizer.zero_grad()
            (model(inputs) - inputs.sum(1, keepdim=True)).square().mean().backward()
            if state.step == 7 and hvd.rank() == 1 and not os.path.exists(marker):
                open(marker, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.step()
            state.step += 1
            sizes.append((state.step, hvd.size()))
            print(state.step, hvd.size(), flush=True)
            if state.step % 3 == 0:
                state.commit()
        return hvd.rank(), hvd.size(), sizes

    return loop(state)


def main() -> None:
    ray.init(address="auto")
    print([ (n["NodeManagerAddress"], n["Resources"]) for n in ray.nodes()])
    settings = RayExecutor.create_settings(timeout_s=60, nics={"lo"})
    executor = RayExecutor(settings, min_workers=2, max_workers=2, cooldown_range=[1,2])
    executor.start()
    import sys
    print(executor.run(train, kwargs={"steps": 20, "marker": sys.argv[1]}))
    executor.shutdown()
    ray.shutdown()

if __name__ == "__main__":
    main()
