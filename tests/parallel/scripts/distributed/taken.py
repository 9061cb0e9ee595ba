"""Scripts of DistributedDataParallel whose optimizers are taken over, beside torch's own."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any, Final

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as Torchs
from torch.utils.checkpoint import checkpoint

from deft_horovod.config import Config
from deft_horovod.distributed import OptimizerType
from deft_horovod.distributed.substitute import substitute
from deft_horovod.errors import NotSupportedError
from tests.parallel.scripts.distributed.beside_ddp import (
    STEPS,
    adamw,
    descent,
    everything,
    loss_of,
    model,
    momentum,
    require_equal_on_all_ranks,
)
from tests.parallel.scripts.distributed.job import run_in_job

substitute(Config.load({"accuracy": "exact"}))
Ours: Final[Any] = torch.nn.parallel.DistributedDataParallel

Script = Callable[[Any, Any], Any]  # a way to train, given a way to make DDP; the trained model


def ours(optimizer: Any) -> bool:
    return isinstance(getattr(optimizer, "inner", None), torch.optim.Optimizer)


def compare(script: Script, make: Any = adamw, ranks: tuple[int, ...] = (2,)) -> None:
    """With two ranks there is one order in which a sum can be formed."""
    mine, torchs = script(Ours, make), script(Torchs, make)
    require_equal_on_all_ranks(mine)
    if dist.get_world_size() in ranks:
        assert everything(mine) == everything(torchs)


def plain(ddp: Any, make: Any) -> Any:
    module = ddp(model())
    optimizer = make(module)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(module, step).backward()
        optimizer.step()
    assert ours(optimizer) == (ddp is Ours)
    return module


def case_plain() -> None:
    compare(plain)
    compare(plain, momentum)


def clipping(ddp: Any, make: Any) -> Any:
    """Averages are read and changed between backward() and step(); schedulers are old and new."""
    module = ddp(model())
    optimizer = make(module)
    falls = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    for step in range(STEPS):
        loss = loss_of(module, step)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 0.1)
        for parameter in module.parameters():
            parameter.grad.add_(parameter.detach(), alpha=1e-3)
        optimizer.step()
        falls.step()
        plateau.step(1.0)
        optimizer.zero_grad()
    return module


def case_reads_of_averages() -> None:
    compare(clipping)


def scheduled_early(ddp: Any, make: Any) -> Any:
    """Optimizer and scheduler are older than DDP, as Trainer and Accelerate make them."""
    plain = model()
    optimizer = make(plain)
    falls = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    module = ddp(plain)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as that step() of the scheduler came first
        for step in range(STEPS):
            loss_of(module, step).backward()
            optimizer.step()
            falls.step()
            optimizer.zero_grad()
    assert optimizer.param_groups[0]["lr"] < 0.5 * optimizer.param_groups[0]["initial_lr"]
    return module


def case_schedulers_before_ddp() -> None:
    compare(scheduled_early)


def twice(ddp: Any, make: Any) -> Any:
    """Each backward averages; what they add up to is near what DDP gets, not the same bits."""
    module = ddp(model(), broadcast_buffers=False)
    optimizer = make(module)
    for step in range(6):
        optimizer.zero_grad()
        loss_of(module, 2 * step).backward()
        loss_of(module, 2 * step + 1).backward()
        optimizer.step()
    return module


def case_two_backward_passes() -> None:
    mine, torchs = twice(Ours, momentum), twice(Torchs, momentum)
    require_equal_on_all_ranks(mine)
    for one, other in zip(mine.parameters(), torchs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def layers(inputs: int, outputs: int) -> torch.nn.Module:
    first, last = torch.nn.Linear(inputs, 64), torch.nn.Linear(64, outputs)
    return torch.nn.Sequential(first, torch.nn.Tanh(), last)


def adversaries(ddp: Any, make: Any) -> Any:
    """The backward of one leaves gradients in the other, which are thrown away."""
    torch.manual_seed(3)
    maker = ddp(
        torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 6))
    )
    judge = ddp(
        torch.nn.Sequential(torch.nn.Linear(6, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    )
    made_by, judged_by = make(maker), make(judge)
    for step in range(12):
        generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
        noise = torch.randn(8, 4, generator=generator)
        real = torch.rand(8, 6, generator=generator)
        judged_by.zero_grad()
        (judge(maker(noise).detach()).mean() - judge(real).mean()).backward()
        judged_by.step()
        made_by.zero_grad()
        (-judge(maker(noise)).mean()).backward()
        made_by.step()
    return torch.nn.ModuleList([maker.module, judge.module])


def case_adversaries() -> None:
    compare(adversaries, momentum)


class Branches(torch.nn.Module):
    """One of them is used by rank 0 alone, one by nobody."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(8)
        self.common, self.own, self.idle = (torch.nn.Linear(12, 12) for _ in range(3))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.common(inputs)
        return self.own(hidden) if dist.get_rank() == 0 else hidden


def branching(ddp: Any, make: Any) -> Any:
    module = ddp(Branches(), find_unused_parameters=True)
    optimizer = make(module)
    for step in range(8):
        optimizer.zero_grad()
        loss_of(module, step).backward()
        optimizer.step()
    return module


def case_unused_parameters() -> None:
    compare(branching, momentum)  # which would move what nobody used, by its weight decay
    fresh = Branches().idle.weight
    assert torch.equal(branching(Ours, momentum).module.idle.weight, fresh)


class Checkpointed(torch.nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        torch.manual_seed(8)
        self.first, self.second = torch.nn.Linear(12, 96), torch.nn.Linear(96, 12)
        self.reentrant = reentrant

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.first(inputs.requires_grad_()))
        return checkpoint(self.second, hidden, use_reentrant=self.reentrant)


def case_passes_within_passes() -> None:
    for reentrant in (True, False):

        def checkpointed(ddp: Any, make: Any, reentrant: bool = reentrant) -> Any:
            module = ddp(Checkpointed(reentrant))
            optimizer = make(module)
            for step in range(8):
                optimizer.zero_grad()
                loss_of(module, step).backward()
                optimizer.step()
            return module

        compare(checkpointed)


def evaluating(ddp: Any, make: Any) -> Any:
    """The closure of L-BFGS runs several backward passes in one step."""
    module = ddp(model(), broadcast_buffers=False)
    optimizer = make(module)
    for step in range(3):

        def closure(step: int = step) -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(module, step)
            loss.backward()
            return loss

        optimizer.step(closure)
    return module


def case_closure() -> None:
    compare(evaluating, adamw)
    compare(evaluating, lambda m: torch.optim.LBFGS(m.parameters(), lr=0.1, max_iter=3))


def scaled(ddp: Any, make: Any) -> Any:
    module = ddp(model())
    optimizer = make(module)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)
    for step in range(12):
        optimizer.zero_grad()
        scaler.scale(loss_of(module, step)).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(module.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
    return module


def case_loss_scaling() -> None:
    compare(scaled)


def resumed(ddp: Any, make: Any) -> Any:
    module = ddp(model())
    optimizer = make(module)
    for step in range(12):
        if step == 6:
            state = pickle.dumps((module.state_dict(), optimizer.state_dict()))
            module = ddp(model())
            optimizer = make(module)
            of_model, of_optimizer = pickle.loads(state)  # noqa: S301  our own
            module.load_state_dict(of_model)
            optimizer.load_state_dict(of_optimizer)
        optimizer.zero_grad()
        loss_of(module, step).backward()
        optimizer.step()
    return module


def case_checkpoints() -> None:
    compare(resumed)


def case_what_scripts_look_at() -> None:
    module = Ours(model())
    optimizer = adamw(module)
    loss_of(module, 0).backward()
    assert isinstance(module, torch.nn.parallel.DistributedDataParallel)
    assert isinstance(optimizer, torch.optim.AdamW)
    assert all(name.startswith("module.") for name in module.state_dict())
    again = pickle.loads(pickle.dumps(optimizer))  # noqa: S301  our own
    assert isinstance(again, torch.optim.AdamW)
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(3))]})
    assert len(optimizer.param_groups) == 2
    other = torch.optim.SGD([torch.nn.Parameter(torch.zeros(3))], lr=0.1)
    Ours(model())(torch.zeros(2, 12))
    assert not ours(other)  # nobody else trains it
    assert isinstance(OptimizerType, type)


def refused(run: Callable[[], object], word: str) -> None:
    try:
        run()
    except NotSupportedError as error:
        assert word in str(error), str(error)
        return
    raise AssertionError(f"not refused: {word}")


def case_refused() -> None:
    inputs = torch.zeros(2, 12)

    def replaced() -> None:
        module = Ours(model())
        optimizer = adamw(module)
        optimizer.step = lambda: None
        module(inputs)

    refused(replaced, "was replaced")

    def two() -> None:
        both = Ours(model())
        pair = adamw(both), momentum(both)
        both(inputs)
        del pair

    refused(two, "another optimizer")

    def others() -> None:
        some = Ours(model())
        optimizer = torch.optim.SGD(
            [*some.parameters(), torch.nn.Parameter(torch.zeros(2))], lr=0.1
        )
        some(inputs)
        del optimizer

    refused(others, "in no such model")


def with_options(**options: Any) -> Any:
    """The same again, with other options: the models that it makes are its own."""
    substitute(Config.load(options))
    return torch.nn.parallel.DistributedDataParallel


def case_unasked() -> None:
    """What is rounded without a word is rounded here, too, and nothing is late."""
    quick = {"profile_warmup_steps": 1, "profile_steps": 2, "trial_steps": 2, "trial_rounds": 1}
    for make, rounds in ((adamw, True), (momentum, True), (descent, False)):
        module = with_options(**quick, warmup_steps=0)(model())
        optimizer = make(module)
        for step in range(2 * STEPS):
            loss_of(module, step).backward()
            optimizer.step()
            optimizer.zero_grad()
        stats = optimizer.stats()
        tried = {name.partition(",")[0] for name in stats["trials_us"]}
        assert ("fewest_bytes" in tried) == rounds, stats
        assert all(one.delay == 0 for one in optimizer.plan.generations)
        require_equal_on_all_ranks(module)


def case_formats_and_late_updates() -> None:
    for options in ({"policy": "least_stale", "accuracy": "fast"}, {"policy": "deft"}):
        module = with_options(**options)(model())
        optimizer = momentum(module)
        for step in range(STEPS):
            loss_of(module, step).backward()
            optimizer.step()
            optimizer.zero_grad()
        optimizer.flush()
        require_equal_on_all_ranks(module)
        assert all(torch.isfinite(p).all() for p in module.parameters())


if __name__ == "__main__":
    run_in_job(globals())
