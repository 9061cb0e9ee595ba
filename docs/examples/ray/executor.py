"""Horovod's RayExecutor with this package inside.

python docs/examples/ray/executor.py
"""

from __future__ import annotations

import hashlib

import ray
from horovod.ray import RayExecutor


def train(steps: int = 20) -> str:
    """On every worker, so what it needs is imported here."""
    import torch

    import deft_horovod.torch as hvd

    hvd.init()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.AdamW(model.parameters(), lr=0.01), named_parameters=model.named_parameters()
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    data = torch.Generator().manual_seed(hvd.rank())
    for _ in range(steps):
        inputs = torch.randn(16, 8, generator=data)
        optimizer.zero_grad()
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
    bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    return f"loss {loss.item():.3f}, {hashlib.sha256(bits).hexdigest()[:16]}"


def main() -> None:
    ray.init()
    executor = RayExecutor(RayExecutor.create_settings(timeout_s=60), num_workers=2)
    executor.start()
    for rank, said in enumerate(executor.run(train)):
        print(f"rank {rank}: {said}")
    executor.shutdown()


if __name__ == "__main__":
    main()
