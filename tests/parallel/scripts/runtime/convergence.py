"""What the convergence study simulates in one process, trained by real ranks."""

from __future__ import annotations

import horovod.torch as stock
import torch

import deft_horovod.torch as hvd
from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.training import Run, Training, rate_share
from tests.parallel.scripts.late_plans import Late, plan_of, saved
from tests.parallel.scripts.training import equal_on_all_ranks
from tests.parallel.scripts.twins import main

STEPS = 40
MAKE = {
    "sgd": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9),
    "adamw": lambda p, lr: torch.optim.AdamW(p, lr=lr, weight_decay=0.01),
}


def check(optimizer_name: str, lr: float, arm: Arm) -> None:
    """One simulated and one real training end with the same parameters."""
    run = Run("mlp", optimizer_name, lr, arm, seed=3, workers=stock.size(), stretch=STEPS / 300)
    simulated, real = Training(run), Training(run)
    simulated.train()
    model, stream = real.model, real.streams[stock.rank()]
    timings = [Late(delay=arm.delay, merged=arm.merge)] * len(list(model.parameters()))
    file = saved(plan_of(model, timings))
    optimizer = hvd.DistributedOptimizer(
        MAKE[optimizer_name](model.parameters(), lr),
        model.named_parameters(),
        config={"plan_file": file, "correction": arm.correction},
    )
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = lr * rate_share(step / STEPS)
        optimizer.zero_grad()
        real.task.loss(model, next(stream)).backward()
        optimizer.step()
    assert equal_on_all_ranks(model.parameters())
    for (name, mine), theirs in zip(
        model.named_parameters(), simulated.model.parameters(), strict=True
    ):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=5e-5), (
            f"{name} differs by {float((mine - theirs).abs().max()):.3g}"
        )
    optimizer.flush()


def case_uncorrected() -> None:
    check("sgd", 0.05, Arm(-1, 1, 1, "none", warmup=0))


def case_predicted() -> None:
    check("sgd", 0.1, Arm(-1, 1, 1, "local", warmup=0, partial=True))


def case_predicted_adamw_two_late() -> None:
    check("adamw", 0.01, Arm(-1, 2, 1, "local", warmup=0, partial=True))


def case_merged_adamw() -> None:
    check("adamw", 0.01, Arm(-1, 1, 4, "local", warmup=0, partial=True, power=1.0))


def case_own_and_previous() -> None:
    check("sgd", 0.1, Arm(-1, 1, 1, "own_and_previous", warmup=0))


if __name__ == "__main__":
    main(globals())
