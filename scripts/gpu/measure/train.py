"""A training script in plain torch, as deft-profile run takes it: random data, one device."""

from __future__ import annotations

import argparse
import contextlib
import sys

import torch

from scripts.gpu.measure import models as gpu_models

PRECISIONS = ("float32", "tf32", "bf16")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=tuple(gpu_models.MODELS), default="resnet50")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--rows", type=int, default=0, help="of a batch; 0: as usual")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--precision", choices=PRECISIONS, default="tf32")
    options = parser.parse_args(arguments)
    torch.backends.cudnn.benchmark = True
    if options.precision != "float32":
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
    model = gpu_models.make(options.model, options.device)
    optimizer = gpu_models.optimizer_of(options.model, model)
    batch = gpu_models.batch_of(options.model, options.device, rows=options.rows)
    for _ in range(options.steps):
        optimizer.zero_grad()
        with contextlib.ExitStack() as stack:
            if options.precision == "bf16":
                stack.enter_context(torch.autocast(options.device, dtype=torch.bfloat16))
            loss = gpu_models.loss_of(model, batch)
        loss.backward()
        optimizer.step()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
