"""The Trainer of transformers with Horovod: ranks average before Trainer looks at the gradients.

horovodrun -np 2 python docs/examples/libraries/trainer.py
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import pydoc_data.topics
import tempfile
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

import deft_horovod.torch as hvd

LENGTH, BATCH = 32, 4


class AverageFirst(TrainerCallback):
    """`step()` does not average again, and nothing is on its way when training has ended."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._step = contextlib.ExitStack()

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        self._step.enter_context(self._optimizer.skip_synchronize())

    def on_optimizer_step(self, *_: Any, **__: Any) -> None:
        self._step.close()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self._optimizer.flush()


class AveragingTrainer(Trainer):
    """Trainer clips right after the last backward pass of a step, or multiplies all gradients by 1
    to learn their norm. By then they have to be averages, or it writes to what Horovod writes to.
    """

    def __init__(self, *words: Any, distributed: Any, **named: Any) -> None:
        super().__init__(*words, callbacks=[AverageFirst(distributed)], **named)
        self._distributed = distributed

    def training_step(self, *words: Any, **named: Any) -> torch.Tensor:
        loss = super().training_step(*words, **named)
        if self.accelerator.sync_gradients:
            self._distributed.synchronize()
        return loss


def texts() -> list[dict[str, torch.Tensor]]:
    """This rank's share of what Python's help() says, as bytes."""
    data = torch.tensor(list("".join(pydoc_data.topics.topics.values()).encode()))
    pieces = data[: len(data) // LENGTH * LENGTH].view(-1, LENGTH)[hvd.rank() :: hvd.size()]
    return [{"input_ids": piece, "labels": piece} for piece in pieces]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--bf16", action="store_true", help="autocast")
    parser.add_argument("--output", help="folder of checkpoints")
    options = parser.parse_args()
    hvd.init()
    torch.manual_seed(0)
    size = {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 256, "n_positions": LENGTH}
    model = GPT2LMHeadModel(GPT2Config(**size, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
    # Only rank 0 leaves anything behind.
    first = hvd.rank() == 0
    arguments = TrainingArguments(
        output_dir=options.output or tempfile.mkdtemp(prefix="trainer-"),
        max_steps=options.steps,
        per_device_train_batch_size=BATCH,
        gradient_accumulation_steps=2,
        max_grad_norm=1.0,  # of the averages
        logging_steps=4 if first else options.steps + 1,
        save_strategy="steps" if first else "no",
        save_steps=options.steps,
        report_to="none",
        use_cpu=True,
        bf16=options.bf16,
        disable_tqdm=True,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        backward_passes_per_step=arguments.gradient_accumulation_steps,
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.8, options.steps)
    trainer = AveragingTrainer(
        model,
        arguments,
        train_dataset=texts(),
        optimizers=(optimizer, scheduler),
        distributed=optimizer,
    )
    trainer.train()
    if first:
        bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
        print("trained", trainer.state.global_step, "steps,", hashlib.sha256(bits).hexdigest()[:16])


if __name__ == "__main__":
    main()
