"""Lightning with Horovod: one device for each rank, and a module that steps by itself.

horovodrun -np 2 python docs/examples/libraries/lightning_module.py
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from typing import Any

import lightning
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import deft_horovod.torch as hvd


class Classifier(lightning.LightningModule):
    """Steps by itself, so that gradients are clipped after ranks have averaged them."""

    def __init__(self, *, automatic: bool) -> None:
        super().__init__()
        self.automatic_optimization = automatic
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2)
        )

    def configure_optimizers(self) -> torch.optim.Optimizer:
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        return hvd.DistributedOptimizer(optimizer, named_parameters=self.named_parameters())

    def on_train_end(self) -> None:
        self.optimizers().optimizer.flush()  # where updates may be late, these are the last ones

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        inputs, labels = batch
        loss = torch.nn.functional.cross_entropy(self.layers(inputs), labels)
        if not self.automatic_optimization:
            prepared = self.optimizers()  # Lightning's, around ours
            optimizer = prepared.optimizer
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(self.parameters(), 0.1)
            with optimizer.skip_synchronize():
                prepared.step()
        return loss


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--automatic", action="store_true", help="without clipping")
    parser.add_argument("--bf16", action="store_true", help="autocast")
    parser.add_argument("--output", help="folder of checkpoints")
    options = parser.parse_args()
    hvd.init()
    torch.manual_seed(0)
    inputs = torch.randn(512, 16)
    data = TensorDataset(inputs, (inputs[:, :4].sum(1) > 0).long())
    loader = DataLoader(
        data, batch_size=8, sampler=DistributedSampler(data, hvd.size(), hvd.rank())
    )
    model = Classifier(automatic=options.automatic)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    trainer = lightning.Trainer(
        max_steps=options.steps,
        accelerator="cpu",
        devices=1,
        logger=False,
        default_root_dir=options.output or tempfile.mkdtemp(prefix="lightning-"),
        precision="bf16-mixed" if options.bf16 else "32-true",
        enable_checkpointing=hvd.rank() == 0,  # only rank 0 leaves anything behind
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    trainer.fit(model, loader)
    mine = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
    everyone = hvd.allgather_object(mine.hexdigest())
    if hvd.rank() == 0:
        equal = "equal" if len(set(everyone)) == 1 else "DIFFERENT"
        print(f"{trainer.global_step} steps, replicas {equal}, {everyone[0][:16]}")


if __name__ == "__main__":
    main()
