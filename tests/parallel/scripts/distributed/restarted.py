"""Trains with checkpoints; in the first attempt rank 1 dies, and torchrun starts all again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import torch
import torch.distributed as dist

from deft_horovod.distributed import DistributedOptimizer
from tests.parallel.scripts.reporting import options, report

STEPS, EVERY, DIES_AT = 14, 3, 8


def main() -> None:
    torch.set_num_threads(1)
    rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    # In the store of torchrun are the addresses of ranks that have died (torch 2.13).
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.PrefixStore(f"attempt {attempt}", dist.TCPStore(*place, is_master=False))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    optimizer = DistributedOptimizer(
        torch.optim.AdamW(model.parameters(), lr=0.01), model, policy=options()["policy"]
    )
    path = Path(options()["folder"]) / "checkpoint.pt"
    first = 0
    if path.exists():
        kept = torch.load(path)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first = kept["step"]
    for step in range(first, STEPS):
        if step == DIES_AT and rank == 1 and attempt == 0 and options()["dies"]:
            os._exit(3)
        optimizer.zero_grad()
        inputs = torch.randn(4, 8, generator=torch.Generator().manual_seed(100 * step + rank))
        model(inputs).square().sum().backward()
        optimizer.step()
        if (step + 1) % EVERY == 0 and rank == 0:
            kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**kept, "step": step + 1}, path.with_suffix(".part"))
            path.with_suffix(".part").replace(path)
    bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    report({"attempt": attempt, "first": first, "bits": hashlib.sha256(bits).hexdigest()})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
