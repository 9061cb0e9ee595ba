"""A policy that updates parameters in the next forward, and an average of weights after each step.

horovodrun -np 2 python docs/examples/gated.py
"""

from __future__ import annotations

import torch

import deft_horovod.torch as hvd

hvd.init()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.05),
    named_parameters=model.named_parameters(),
    policy="priority",
    config={"partition_bytes": "64KiB", "credit_bytes": "256KiB"},
)
averaged = [p.detach().clone() for p in model.parameters()]
data = torch.Generator().manual_seed(hvd.rank())
for _ in range(10):
    inputs = torch.randn(16, 8, generator=data)
    optimizer.zero_grad()
    ((model(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean().backward()
    optimizer.step()
    # The first operation of torch on a parameter waits for the updates that are on their way.
    for mean, parameter in zip(averaged, model.parameters(), strict=True):
        mean.lerp_(parameter.detach(), 0.1)

optimizer.flush()  # as at the end of training: what torch does not see, has to ask for them
largest = max(abs(parameter.detach().numpy()).max() for parameter in model.parameters())
everyone = hvd.allgather(torch.cat([mean.flatten() for mean in averaged]).unsqueeze(0))
if hvd.rank() == 0:
    print(f"equal on all ranks: {bool((everyone == everyone[0]).all())}, up to {largest:.2f}")
