"""While updates come late, in every order of clearing, stepping, reading, saving and flushing: what
is thrown away is thrown away, and what is due is applied."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import horovod.torch as stock
import torch
from torch import nn

import deft_horovod.torch as hvd
from tests.parallel.scripts.device import DEVICE
from tests.parallel.scripts.late_plans import Late, LateJob, plan_of, saved, sgd
from tests.parallel.scripts.runtime.late import (
    DELAYED,
    FORWARD,
    MERGED,
    MIXED,
    STEPS,
    Job,
    skip_a_step,
)
from tests.parallel.scripts.training import (
    Data,
    assert_equal_models,
    equal_on_all_ranks,
    loss_of,
    mlp,
)
from tests.parallel.scripts.twins import SIZES, main

# Everything that is not summed over steps.
APART = [
    Late(gated=True, forward=True),
    Late(),
    Late(delay=1, forward=True),
    Late(gated=True),
    Late(delay=1),
    Late(delay=2),
]


def _thrown_away(before_clearing: Callable[[Any], None]) -> None:
    job = Job(DELAYED)
    for _ in range(3):
        job.train(2)
        job.reference.train(2)
        loss_of(job.model, job.data.next()).backward()
        before_clearing(job.optimizer)
        job.optimizer.zero_grad()
        skip_a_step(job.reference)
        job.train(1)
        job.reference.train(1)
        job.check("after a step that was thrown away")
    assert job.optimizer.stats()["dropped"] == 3 * len(DELAYED)
    job.optimizer.flush()
    job.reference.flush()
    job.check("after the flush")


def case_options_are_read_before_gradients_are_cleared() -> None:
    _thrown_away(lambda optimizer: optimizer.param_groups[0]["lr"])


def case_one_rank_reads_before_gradients_are_cleared() -> None:
    def read(optimizer: Any) -> None:
        if stock.rank() == 1:
            assert optimizer.param_groups
            assert optimizer.state

    _thrown_away(read)


def case_averages_are_cleared() -> None:
    """As where a norm turns out to be too large after synchronize()."""
    _thrown_away(lambda optimizer: optimizer.synchronize())


def case_a_scheduler_steps_before_gradients_are_cleared() -> None:
    job = Job(DELAYED)
    ours, theirs = (
        torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        for optimizer in (job.optimizer, job.reference.optimizer)
    )
    for _ in range(4):
        job.train(1)
        job.reference.train(1)
        loss_of(job.model, job.data.next()).backward()
        ours.step()
        theirs.step()
        job.optimizer.zero_grad()
        skip_a_step(job.reference)
    job.train(1)
    job.reference.train(1)
    job.check("with a scheduler between backward() and zero_grad()")
    job.optimizer.flush()


class Ledger:
    """Plain SGD at a rate of 1: what was applied is the way that parameters have gone."""

    def __init__(self, timings: Sequence[Late]) -> None:
        self.model, self.data = mlp(), Data()
        file = saved(plan_of(self.model, timings))
        self.optimizer: Any = hvd.DistributedOptimizer(
            torch.optim.SGD(self.model.parameters(), lr=1.0),
            self.model.named_parameters(),
            config={"plan_file": file, "correction": "none"},
        )
        self.start = [p.detach().clone() for p in self.model.parameters()]
        self.produced = [torch.zeros_like(p) for p in self.model.parameters()]

    def backward(self) -> None:
        (0.01 * loss_of(self.model, self.data.next())).backward()

    def step(self) -> None:
        """Also books what this step produces."""
        local = [p.grad for p in self.model.parameters()]
        averages = [stock.allreduce(g, name=f"ledger.{i}") for i, g in enumerate(local)]
        for total, average in zip(self.produced, averages, strict=True):
            total.add_(average)
        self.optimizer.step()

    def train(self, steps: int) -> None:
        for _ in range(steps):
            self.optimizer.zero_grad()
            self.backward()
            self.step()

    def check(self) -> None:
        self.optimizer.flush()
        parameters = list(self.model.parameters())
        for p, start, produced in zip(parameters, self.start, self.produced, strict=True):
            torch.testing.assert_close(start - p.detach(), produced, rtol=1e-4, atol=1e-6)
        assert equal_on_all_ranks(parameters)


def _late_ledgers() -> list[Ledger]:
    ledgers = [Ledger(DELAYED), Ledger(FORWARD), Ledger(APART)]
    for ledger in ledgers:
        ledger.train(3)
        assert ledger.optimizer.stats()["late"]
    return ledgers


def case_a_flush_between_backward_and_step() -> None:
    for ledger in _late_ledgers():
        for _ in range(4):
            ledger.optimizer.zero_grad()
            ledger.backward()
            ledger.optimizer.flush()
            ledger.step()
            ledger.train(2)
        ledger.check()
        assert ledger.optimizer.stats()["dropped"] == 0


def case_a_flush_before_gradients_are_cleared() -> None:
    """As in a GAN: the other model's loss has left gradients here, and a checkpoint is made."""
    for ledger in _late_ledgers():
        for _ in range(4):
            ledger.train(1)
            ledger.backward()
            ledger.optimizer.flush()
            ledger.optimizer.zero_grad()
            ledger.train(2)
        ledger.check()


def case_orders_of_clearing_and_reading() -> None:
    for ledger in _late_ledgers():
        for number in range(12):
            ledger.train(1)
            ledger.backward()
            if number % 2:
                assert ledger.optimizer.param_groups
            if number % 3 == 1:
                ledger.optimizer.synchronize()
            if number % 4 == 1:
                ledger.optimizer.state_dict()
            ledger.optimizer.zero_grad()
            if number % 3:
                ledger.optimizer.zero_grad(set_to_none=False)
        ledger.check()


def case_a_checkpoint_between_backward_and_step() -> None:
    """It is that of the boundary before: the gradients that lie there are no part of it."""
    job = Job(DELAYED)
    job.train(3)
    loss_of(job.model, job.data.next()).backward()
    resumed, other = job.resumed()
    job.optimizer.zero_grad()
    ahead = copy.deepcopy(job.data)
    job.train(STEPS, other, resumed)
    job.reference.train(3)
    for data in job.reference.data:
        data.next()
    job.data = ahead
    job.reference.train(STEPS)
    assert_equal_models(resumed, job.reference.model, "resumed in the middle of a step")
    assert other.stats()["dropped"] == 0
    other.flush()
    job.optimizer.flush()


def case_a_checkpoint_between_backward_and_step_of_sums() -> None:
    """Sums that the step's gradients were added to are dropped when it is loaded, and counted."""
    for timings in (MERGED, MIXED):
        for before in (2, 3, 5):
            job = Job(timings)
            job.train(before)
            loss_of(job.model, job.data.next()).backward()
            resumed, other = job.resumed()
            job.optimizer.step()
            job.train(4)
            job.train(STEPS, other, resumed)
            other.flush()
            job.optimizer.flush()
            assert equal_on_all_ranks(resumed.parameters())
            assert equal_on_all_ranks(job.model.parameters())
            assert job.optimizer.stats()["dropped"] == 0
            if timings is MERGED and before % 2:
                assert other.stats()["dropped"] == len(MERGED)


def _scaler() -> torch.amp.GradScaler:
    return torch.amp.GradScaler(DEVICE.type, init_scale=4.0, growth_interval=1)


def _recipe(job: Job, scaler: torch.amp.GradScaler, *, unscale: bool, infinite: bool) -> None:
    """From Horovod's documentation."""
    job.optimizer.zero_grad()
    loss = loss_of(job.model, job.data.next())
    scaler.scale(loss * float("inf") if infinite else loss).backward()
    job.optimizer.synchronize()
    if unscale:
        scaler.unscale_(job.optimizer)
    with job.optimizer.skip_synchronize():
        scaler.step(job.optimizer)
    scaler.update()


def case_horovods_recipe_for_loss_scales() -> None:
    """The scale doubles all the time, also at the first boundary, where nothing is due."""
    for unscale in (False, True):
        for timings in (DELAYED, [late if late.merged == 1 else Late(delay=1) for late in MIXED]):
            job, scaler = Job(timings), _scaler()
            for step in range(STEPS):
                _recipe(job, scaler, unscale=unscale, infinite=False)
                job.reference.train(1)
                job.gated_in_time()
                job.check(f"unscale={unscale}, step {step}")
            assert scaler.get_scale() == 4.0 * 2**STEPS
            job.optimizer.flush()
            job.reference.flush()
            job.check(f"unscale={unscale}, after the flush")


def case_horovods_recipe_with_an_overflow() -> None:
    for unscale in (False, True):
        job, scaler = Job(DELAYED), torch.amp.GradScaler(DEVICE.type, init_scale=4.0)
        for step in range(6):
            infinite = step == 2 and stock.rank() == 1
            _recipe(job, scaler, unscale=unscale, infinite=infinite)
            assert equal_on_all_ranks(job.model.parameters())
        assert all(bool(p.isfinite().all()) for p in job.model.parameters())
        assert job.optimizer.stats()["dropped"] == len(DELAYED)
        assert scaler.get_scale() == 2.0
        job.optimizer.flush()


def case_the_forward_of_another_model_is_no_reason_to_guess() -> None:
    """Seen while this one was watched; a teacher, say, or the other half of a GAN."""
    job, other = LateJob(DELAYED, sgd, "local"), mlp(seed=7)
    probe = Data(rank=9).next()[0]
    for step in range(STEPS):
        job.optimizer.zero_grad()
        loss_of(job.model, job.data.next()).backward()
        job.optimizer.step()
        other(probe)
        assert equal_on_all_ranks(job.model.parameters()), f"step {step}: a guess is in the model"
    assert job.optimizer.stats()["correction"] == "local"
    job.optimizer.flush()


class _Gan:
    """Two models, each with its optimizer; the generator's loss leaves gradients on the other."""

    def __init__(self, wrap: Callable[[nn.Module], Any]) -> None:
        torch.manual_seed(1)
        self.generator = nn.Sequential(nn.Linear(7, 20), nn.Tanh(), nn.Linear(20, 7))
        self.critic = nn.Sequential(nn.Linear(7, 30), nn.Tanh(), nn.Linear(30, 1))
        self.of_generator, self.of_critic = wrap(self.generator), wrap(self.critic)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.of_critic, 0.99)

    def step(self, noise: torch.Tensor, real: torch.Tensor) -> None:
        self.of_critic.zero_grad()
        fake = self.generator(noise)
        (self.critic(fake.detach()).square() + (self.critic(real) - 1).square()).mean().backward()
        self.of_critic.step()
        self.of_generator.zero_grad()
        (self.critic(fake) - 1).square().mean().backward()
        self.of_generator.step()
        self.schedule.step()  # reads the options of the critic, which has gradients
        assert self.of_critic.param_groups[0]["lr"] > 0.0


def _error(critic: nn.Module, probe: torch.Tensor) -> float:
    with torch.no_grad():
        return float((critic(probe) - 1).square().mean())


def _trained_gan(policy: str, **options: Any) -> _Gan:
    def wrap(model: nn.Module) -> Any:
        return hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.05),
            model.named_parameters(),
            policy=policy,
            config={**SIZES, "correction": "none", **options},
        )

    gan, data = _Gan(wrap), Data()
    probe = Data(rank=7).next()[0]
    before = _error(gan.critic, probe)
    for _ in range(60):
        gan.step(data.next()[0], data.next()[0])
    for optimizer in (gan.of_generator, gan.of_critic):
        optimizer.flush()
    parameters = [*gan.generator.parameters(), *gan.critic.parameters()]
    assert all(bool(p.isfinite().all()) for p in parameters)
    assert _error(gan.critic, probe) < before
    assert equal_on_all_ranks(parameters)
    return gan


def case_a_gan_whose_scheduler_reads_options() -> None:
    """It ended in NaN: what was thrown away was applied."""
    for policy in ("least_stale", "deft"):
        _trained_gan(policy, max_delay=1, max_merge=1)


def case_a_gan_with_sums() -> None:
    """Each sum of the critic has a step of the generator's turn in it, and would be dropped. What
    is measured decides whether there are sums at all."""
    for policy in ("covap", "deft"):
        gan = _trained_gan(policy, max_merge=4)
        dropped, plan = gan.of_critic.stats()["dropped"], gan.of_critic.plan
        assert plan is not None
        assert not dropped or all(one.merged == 1 for one in plan.generations)
        assert gan.of_generator.stats()["dropped"] == 0


if __name__ == "__main__":
    main(globals())
