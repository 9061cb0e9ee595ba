"""A script of stock Horovod; rank 0 prints what came out."""

from __future__ import annotations

import hashlib

import horovod.torch as hvd
import torch

hvd.init()
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
data = torch.Generator().manual_seed(hvd.rank())
for _ in range(20):
    inputs = torch.randn(16, 8, generator=data)
    optimizer.zero_grad()
    (model(inputs) - inputs.sum(1, keepdim=True)).square().mean().backward()
    optimizer.step()
if hvd.rank() == 0:
    bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    ours = type(optimizer).__module__.startswith("deft_horovod")
    hosts = hvd.size() // hvd.local_size()
    print(f"{hosts} x {hvd.local_size()} ours={ours} {hashlib.sha256(bits).hexdigest()[:16]}")
