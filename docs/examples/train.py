"""The smallest training script: two lines differ from plain PyTorch with Horovod.

horovodrun -np 2 python docs/examples/train.py
"""

from __future__ import annotations

import torch

import deft_horovod.torch as hvd  # was: import horovod.torch as hvd

hvd.init()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    policy="bucket",  # new, and optional
)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

data = torch.Generator().manual_seed(hvd.rank())
for _ in range(20):
    inputs = torch.randn(16, 8, generator=data)
    optimizer.zero_grad()
    loss = ((model(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean()
    loss.backward()
    optimizer.step()

if hvd.rank() == 0:
    stats = optimizer.stats()
    print(f"loss {loss.item():.3f} after {stats['steps']} steps")
    print(f"{stats['messages']} messages, {stats['bytes']} bytes, policy {stats['policy']}")
