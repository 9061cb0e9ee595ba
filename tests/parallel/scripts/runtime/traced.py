"""Trains for some steps; DEFT_TRACE says where the trace goes."""

import os

import torch
from torch import nn

import deft_horovod.torch as hvd
from tests.parallel.scripts import reporting

hvd.init()
torch.manual_seed(0)
options = reporting.options()
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters(), **options["arguments"]
)
for _ in range(options["steps"]):
    optimizer.zero_grad()
    model(torch.randn(32, 64)).square().sum().backward()
    optimizer.step()
optimizer.flush()
reporting.report({"messages": optimizer.stats()["messages"], "steps": optimizer.stats()["steps"]})
if "exit" in options:
    os._exit(0)
