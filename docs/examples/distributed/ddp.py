"""A script of DistributedDataParallel, which knows nothing of deft_horovod.

torchrun --standalone --nproc-per-node 2 -m deft_horovod --torchrun docs/examples/distributed/ddp.py
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    inputs = torch.randn(768, 16)
    data = TensorDataset(inputs, (inputs[:, :4].sum(1) > 0).long())
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    falling = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for batch, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch), labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        falling.step()
    total = loss.detach()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(f"loss {total.item() / dist.get_world_size()!r}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()  # once the model is gone: the other way round DDP may hang
