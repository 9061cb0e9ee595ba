"""A loop of Accelerate, which wraps the model in DDP. It knows nothing of deft_horovod.

cd docs/examples/distributed
torchrun --standalone --nproc-per-node 2 -m deft_horovod --torchrun accelerated.py
"""

from __future__ import annotations

import hashlib

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, LARGEST_NORM = 6, 1.0


def main() -> Accelerator:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    torch.manual_seed(0)
    inputs = torch.randn(512, 16)
    data = TensorDataset(inputs, (inputs[:, :4].sum(1) > 0).long())
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 32 * EPOCHS)
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    for _ in range(EPOCHS):
        for batch, labels in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(batch), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), LARGEST_NORM)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
    parameters = accelerator.unwrap_model(model).parameters()
    bits = b"".join(p.detach().numpy().tobytes() for p in parameters)
    accelerator.print(f"trained, {hashlib.sha256(bits).hexdigest()[:16]}")
    return accelerator


if __name__ == "__main__":
    main().end_training()  # once the model is gone: the other way round DDP may hang
