"""A loop of Accelerate with Horovod: Accelerate prepares, Horovod averages.

horovodrun -np 2 python docs/examples/libraries/accelerated.py
"""

from __future__ import annotations

import argparse
import hashlib

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import deft_horovod.torch as hvd


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--bf16", action="store_true", help="autocast")
    parser.add_argument("--output", help="folder of the state at the end")
    options = parser.parse_args()
    hvd.init()
    torch.manual_seed(0)
    inputs = torch.randn(512, 16)
    data = TensorDataset(inputs, (inputs[:, :4].sum(1) > 0).long())
    # Each rank is a job of one process to Accelerate, so the script shares the data out.
    sampler = DistributedSampler(data, hvd.size(), hvd.rank())
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.AdamW(model.parameters(), lr=0.01), named_parameters=model.named_parameters()
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    accelerator = Accelerator(cpu=True, mixed_precision="bf16" if options.bf16 else "no")
    model, prepared, loader, scheduler = accelerator.prepare(
        model, optimizer, DataLoader(data, batch_size=8, sampler=sampler), scheduler
    )
    step = 0
    while step < options.steps:
        for batch, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(batch), labels)
            accelerator.backward(loss)
            optimizer.synchronize()  # clips what all ranks have averaged
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            with optimizer.skip_synchronize():
                prepared.step()
            scheduler.step()
            prepared.zero_grad()
            step += 1
            if step == options.steps:
                break
    optimizer.flush()  # where updates may be late, these are the last ones
    average = hvd.allreduce(loss.detach())
    if hvd.rank() == 0:
        if options.output:
            accelerator.save_state(options.output)
        parameters = accelerator.unwrap_model(model).parameters()
        bits = b"".join(p.detach().numpy().tobytes() for p in parameters)
        print(f"loss {average:.3f} after {step} steps, {hashlib.sha256(bits).hexdigest()[:16]}")


if __name__ == "__main__":
    main()
