"""A job of torchrun without Horovod, where DistributedDataParallel would be.

torchrun --standalone --nproc-per-node 2 docs/examples/distributed/train.py
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from deft_horovod.distributed import DistributedOptimizer


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    inputs = torch.randn(512, 16)
    data = TensorDataset(inputs, (inputs[:, :4].sum(1) > 0).long())
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 64), torch.nn.BatchNorm1d(64), torch.nn.Tanh(), torch.nn.Linear(64, 2)
    )
    optimizer = DistributedOptimizer(torch.optim.AdamW(model.parameters(), lr=0.01), model)
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for batch, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch), labels)
            loss.backward()
            optimizer.step()
    optimizer.flush()
    dist.all_reduce(loss.detach())
    if dist.get_rank() == 0:
        average = loss.item() / dist.get_world_size()
        print(f"loss {average:.3f} after {optimizer.stats()['steps']} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
