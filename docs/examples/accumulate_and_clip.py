"""Gradient accumulation, mixed precision with a GradScaler, and clipping of the averages.

horovodrun -np 2 python docs/examples/accumulate_and_clip.py
"""

from __future__ import annotations

import torch

import deft_horovod.torch as hvd

PASSES = 4

hvd.init()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = hvd.DistributedOptimizer(
    torch.optim.AdamW(model.parameters(), lr=0.01),
    named_parameters=model.named_parameters(),
    backward_passes_per_step=PASSES,
)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
data = torch.Generator().manual_seed(hvd.rank())
for _ in range(10):
    optimizer.zero_grad()
    for _ in range(PASSES):
        inputs = torch.randn(16, 8, generator=data)
        loss = ((model(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean() / PASSES
        scaler.scale(loss).backward()
    optimizer.synchronize()  # p.grad now holds the averages over ranks
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    with optimizer.skip_synchronize():
        scaler.step(optimizer)
    scaler.update()

if hvd.rank() == 0:
    print(f"loss {loss.item() * PASSES:.3f}, norm of the last averages {norm.item():.3f}")
