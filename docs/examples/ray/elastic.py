"""Elastic training by Horovod's RayExecutor: if a node dies, the others go on.

python docs/examples/ray/elastic.py
"""

from __future__ import annotations

from collections.abc import Callable

import ray
from horovod.ray import RayExecutor


def train(steps: int, before_step: Callable[[int], None] | None = None) -> list[tuple[int, int]]:
    """On every worker, so what it needs is imported here. Gives how many ranks each step had."""
    import torch

    import deft_horovod.torch as hvd

    hvd.init()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters()
    )

    @hvd.elastic.run
    def loop(state: hvd.elastic.TorchState) -> list[tuple[int, int]]:
        while state.step < steps:
            if before_step is not None:
                before_step(state.step)
            inputs = torch.randn(16, 8)
            optimizer.zero_grad()
            (model(inputs) - inputs.sum(1, keepdim=True)).square().mean().backward()
            optimizer.step()
            state.step += 1
            state.ranks = [*state.ranks, (state.step, hvd.size())]
            if state.step % 5 == 0:
                state.commit()
        return state.ranks

    return loop(hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0, ranks=[]))


def main() -> None:
    ray.init()
    settings = RayExecutor.create_settings(timeout_s=60)
    executor = RayExecutor(settings, min_workers=1, max_workers=2)
    executor.start()
    for step, ranks in executor.run(train, kwargs={"steps": 20})[0]:
        print(f"step {step}: {ranks} ranks")
    executor.shutdown()


if __name__ == "__main__":
    main()
