"""Ray Train's TorchTrainer, with this package in place of DistributedDataParallel.

python docs/examples/ray/torch_trainer.py
"""

from __future__ import annotations

import ray
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer


def train() -> None:
    """On every worker, in the process group of Ray. `prepare_model` would wrap, so leave it out."""
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    from deft_horovod.distributed import DistributedOptimizer

    torch.manual_seed(0)
    inputs = torch.randn(768, 16)
    data = TensorDataset(inputs, (inputs[:, :4].sum(1) > 0).long())
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    optimizer = DistributedOptimizer(torch.optim.AdamW(model.parameters(), lr=0.01), model)
    falling = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for batch, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch), labels)
            loss.backward()
            optimizer.synchronize()  # clips what all ranks have averaged
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            with optimizer.skip_synchronize():
                optimizer.step()
        falling.step()
    total = loss.detach()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(f"loss {total.item() / dist.get_world_size()!r}")


def main() -> None:
    ray.init()
    scaling = ScalingConfig(num_workers=2)
    TorchTrainer(train, scaling_config=scaling).fit()


if __name__ == "__main__":
    main()
