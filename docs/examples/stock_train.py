"""A training script with stock Horovod, as it was before deft_horovod.

horovodrun -np 2 python docs/examples/stock_train.py --steps 80
"""

from __future__ import annotations

import argparse

import horovod.torch as hvd
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=80)
steps = parser.parse_args().steps

hvd.init()
torch.manual_seed(0)
layers = [torch.nn.Linear(512, 512) for _ in range(8)]
model = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.ReLU())))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

data = torch.Generator().manual_seed(hvd.rank())
for _ in range(steps):
    inputs = torch.randn(128, 512, generator=data)
    optimizer.zero_grad()
    loss = (model(inputs) - inputs.abs()).square().mean()
    loss.backward()
    optimizer.step()

if hvd.rank() == 0:
    print(f"loss {loss.item():.4f} after {steps} steps")
