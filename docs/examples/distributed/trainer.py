"""The Trainer of transformers, which wraps the model in DDP. It knows nothing of deft_horovod.

cd docs/examples/distributed
torchrun --standalone --nproc-per-node 2 -m deft_horovod --torchrun trainer.py
"""

from __future__ import annotations

import hashlib
import pydoc_data.topics
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

LENGTH, STEPS = 32, 80


def texts() -> list[dict[str, torch.Tensor]]:
    """What Python's help() says, as bytes."""
    data = torch.tensor(list("".join(pydoc_data.topics.topics.values()).encode()))
    pieces = data[: len(data) // LENGTH * LENGTH].view(-1, LENGTH)
    return [{"input_ids": piece, "labels": piece} for piece in pieces]


def main() -> None:
    torch.manual_seed(0)
    size = {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 256, "n_positions": LENGTH}
    model = GPT2LMHeadModel(GPT2Config(**size, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="trainer-"),
        max_steps=STEPS,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        max_grad_norm=1.0,
        logging_steps=STEPS,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(model, arguments, train_dataset=texts())
    trainer.train()
    if trainer.is_world_process_zero():
        bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
        print(f"trained, {hashlib.sha256(bits).hexdigest()[:16]}")


if __name__ == "__main__":
    main()
