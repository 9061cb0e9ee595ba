"""Late updates that are predicted: bit for bit what plain torch does with copies of the model."""

from __future__ import annotations

import copy
import gc
from collections.abc import Sequence
from typing import Any

import horovod.torch as stock
import torch
from torch import nn

import deft_horovod.torch as hvd
from deft_horovod.runtime.reduce.updates import in_one_pass, options_of
from tests.parallel.scripts.late_plans import Late, LateJob, Make, adamw, sgd
from tests.parallel.scripts.training import (
    Data,
    assert_equal_models,
    equal_on_all_ranks,
    loss_of,
    mlp,
)
from tests.parallel.scripts.twins import main

STEPS = 8
DELAYED = [Late(delay=1)] * 6
TWICE = [Late(delay=2)] * 6
MERGED = [Late(delay=1, merged=2)] * 6
PARTLY = [Late(delay=1), Late(delay=1), Late(gated=True), Late(), Late(), Late(gated=True)]

BEHIND_GATES = [Late(delay=1, merged=2), Late(gated=True, merged=2)] * 3

Update = tuple[torch.Tensor, int]  # a gradient and of how many steps it is


class Reference:
    """All ranks in one process. Each takes its gradient with a copy of model and optimizer that has
    made one more step for each late update, with the gradients of this rank."""

    def __init__(self, make: Make, timings: Sequence[Late]) -> None:
        self.model = mlp()
        self.make, self.timings = make, timings
        self.optimizer = make(self.model)
        self.lr = self.optimizer.param_groups[0]["lr"]
        self.mean = not isinstance(self.optimizer, torch.optim.SGD)
        self.data = [Data(rank=rank) for rank in range(stock.size())]
        self.own: list[list[list[torch.Tensor]]] = []  # by step, rank and parameter
        self.step = 0
        self.updates = (
            False  # whether any was seen: until then it is not known what becomes of them
        )

    def train(self, steps: int) -> None:
        for _ in range(steps):
            self.own.append([self.gradients(rank) for rank in range(len(self.data))])
            due = {}
            for i, late in enumerate(self.timings):
                end = self.step - late.delay  # of the steps that are due
                if end >= 0 and (end + 1) % late.merged == 0:
                    due[i] = range(end + 1 - late.merged, end + 1)
            self.update(self.model, self.optimizer, {i: self.average(r, i) for i, r in due.items()})
            self.updates |= any(not self.timings[i].gated for i in due)
            self.step += 1

    def average(self, steps: range, i: int) -> Update:
        sums = [self.merged(rank, steps, i)[0] for rank in range(len(self.data))]
        average = sum(sums[1:], sums[0]) / len(sums)
        return average / len(steps) if self.mean and len(steps) > 1 else average, len(steps)

    def merged(self, rank: int, steps: range, i: int) -> Update:
        total = self.own[steps[0]][rank][i]
        for step in steps[1:]:
            total = total + self.own[step][rank][i]
        return total, len(steps)

    def update(self, model: nn.Module, optimizer: Any, gradients: dict[int, Update]) -> None:
        """What stands for k steps has k times the learning rate, if it is their mean."""
        parameters = list(model.parameters())
        for rate in sorted({steps for _, steps in gradients.values()}):
            for i, p in enumerate(parameters):
                gradient, steps = gradients.get(i, (None, 0))
                p.grad = gradient if steps == rate else None
            for group in optimizer.param_groups:
                group["lr"] = self.lr * (rate if self.mean else 1)
            optimizer.step()

    def gradients(self, rank: int) -> list[torch.Tensor]:
        model = copy.deepcopy(self.model)
        optimizer = self.make(model)
        optimizer.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))
        options = options_of(optimizer)
        flying = self.flying() if self.updates else {}
        for _, ranges in sorted(flying.items()):
            guesses = {i: self.guess(rank, steps, i) for i, steps in ranges.items()}
            # Guesses go through torch's kernels of one pass, whose last bits are others.
            moved = [p for i, p in enumerate(model.parameters()) if i in guesses]
            optimizer.param_groups[0].update(in_one_pass(optimizer, moved, options)[0])
            self.update(model, optimizer, guesses)
        optimizer.zero_grad()
        loss_of(model, self.data[rank].next()).backward()
        return [p.grad for p in model.parameters()]

    def flying(self) -> dict[tuple[int, int, int], dict[int, range]]:
        """What has begun and is not applied, by the step of its update and its own steps."""
        found: dict[tuple[int, int, int], dict[int, range]] = {}
        for i, late in enumerate(self.timings):
            for first in range(0, self.step, late.merged):
                last = first + late.merged - 1
                if last + late.delay >= self.step:
                    steps = range(first, min(last + 1, self.step))
                    key = (last + late.delay, steps[0], steps[-1])
                    found.setdefault(key, {})[i] = steps
        return found

    def guess(self, rank: int, steps: range, i: int) -> Update:
        total, count = self.merged(rank, steps, i)
        return total * (1.0 / count if self.mean else 1.0), count


class Job(LateJob):
    """And its reference."""

    def __init__(
        self, timings: Sequence[Late], make: Make = sgd, correction: str = "local"
    ) -> None:
        super().__init__(timings, make, correction)
        self.reference = Reference(make, timings)

    def check(self, what: str) -> None:
        self.model.state_dict()  # updates behind gates, so that parameters can be compared
        assert equal_on_all_ranks(self.model.parameters()), f"{what}: the replicas differ"
        assert_equal_models(self.model, self.reference.model, what)


def trajectory(timings: Sequence[Late], make: Make) -> None:
    job = Job(timings, make)
    for step in range(STEPS):
        job.train(1)
        job.reference.train(1)
        job.check(f"step {step}")
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())


def case_delayed_sgd() -> None:
    trajectory(DELAYED, sgd)


def case_delayed_adamw() -> None:
    trajectory(DELAYED, adamw)


def case_two_steps_late() -> None:
    trajectory(TWICE, sgd)


def case_two_steps_late_adamw() -> None:
    trajectory(TWICE, adamw)


def case_merged_sgd() -> None:
    trajectory(MERGED, sgd)


def case_merged_adamw() -> None:
    trajectory(MERGED, adamw)


def case_merged_and_two_steps_late() -> None:
    trajectory([Late(delay=2, merged=2)] * 6, adamw)


def case_merged_without_delay() -> None:
    trajectory([Late(merged=2)] * 6, adamw)


def case_merged_behind_gates() -> None:
    trajectory(BEHIND_GATES, adamw)


def case_merged_behind_gates_sgd() -> None:
    trajectory(BEHIND_GATES, sgd)


def case_some_late_some_behind_gates() -> None:
    trajectory(PARTLY, adamw)


def case_every_correction_keeps_replicas_equal() -> None:
    finals = []
    for correction in ("none", "momentum", "previous", "own_share", "local", "own_and_previous"):
        job = Job(DELAYED, sgd, correction)
        job.train(STEPS)
        job.optimizer.flush()
        assert equal_on_all_ranks(job.model.parameters()), correction
        finals.append(torch.cat([p.detach().flatten() for p in job.model.parameters()]))
    different = {tuple(final[:50].tolist()) for final in finals}
    assert len(different) == len(finals), "two corrections do the same"


def case_parameters_are_true_ones_outside_of_a_step() -> None:
    job = Job(DELAYED)
    job.train(4)
    before = [p.detach().clone() for p in job.model.parameters()]
    with torch.no_grad():  # an evaluation
        loss_of(job.model, job.data.next())
    assert_same(before, job.model)
    loss = loss_of(job.model, job.data.next())
    assert not all(
        torch.equal(a, b) for a, b in zip(before, job.model.parameters(), strict=True)
    ), "nothing was predicted"
    loss.backward()
    job.optimizer.zero_grad()  # the step is thrown away
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())
    job.train(2)
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())


def assert_same(values: Sequence[torch.Tensor], model: nn.Module) -> None:
    assert all(torch.equal(a, b) for a, b in zip(values, model.parameters(), strict=True))


def case_a_state_dict_before_backward_has_the_true_values() -> None:
    """And leaves alone what backward needs: as if nobody had asked."""
    job, quiet = Job(DELAYED), Job(DELAYED)
    for _ in range(STEPS):
        before = [p.detach().clone() for p in job.model.parameters()]
        job.optimizer.zero_grad()
        loss = loss_of(job.model, job.data.next())
        if stock.rank() == 0:
            for name, value in job.model.state_dict().items():
                true = before[[n for n, _ in job.model.named_parameters()].index(name)]
                assert torch.equal(value, true), name
        loss.backward()
        job.optimizer.step()
        quiet.train(1)
    assert_same([*quiet.model.parameters()], job.model)
    job.optimizer.flush()
    quiet.optimizer.flush()


def case_an_optimizer_that_is_replaced_leaves_no_guess() -> None:
    """Without a flush, what was in flight is lost; but the model is the next optimizer's alone."""
    job = Job(DELAYED)
    job.train(4)
    before = [p.detach().clone() for p in job.model.parameters()]
    del job.optimizer
    gc.collect()
    assert_same(before, job.model)
    assert not job.model._forward_pre_hooks
    other = hvd.DistributedOptimizer(
        torch.optim.SGD(job.model.parameters(), lr=0.0),
        job.model.named_parameters(),
        policy="bucket",
    )
    job.train(3, other)
    assert_same(before, job.model)
    with torch.no_grad():
        for parameter in job.model.parameters():
            parameter.fill_(7.0)
    assert all(bool((value == 7.0).all()) for value in job.model.state_dict().values())


def case_after_a_checkpoint_training_goes_on() -> None:
    """The step after it cannot be predicted: the model is first seen in its forward."""
    job = Job(DELAYED, adamw)
    job.train(4)
    resumed, other = job.resumed()
    job.train(3, other, resumed)
    other.flush()
    assert equal_on_all_ranks(resumed.parameters())
    assert other.stats()["dropped"] == 0
    job.optimizer.flush()


def case_clipping_is_part_of_the_guess() -> None:
    """Clipped by a half: the guess is as well, so that the trajectory is that of half the rate."""
    job = Job(DELAYED, lambda m: torch.optim.SGD(m.parameters(), lr=0.5))
    halved = Job(DELAYED, lambda m: torch.optim.SGD(m.parameters(), lr=0.25))
    for _ in range(STEPS):
        job.optimizer.zero_grad()
        loss_of(job.model, job.data.next()).backward()
        job.optimizer.synchronize()
        for p in job.model.parameters():
            if p.grad is not None:
                p.grad.mul_(0.5)
        with job.optimizer.skip_synchronize():
            job.optimizer.step()
        halved.train(1)
    for p, q in zip(job.model.parameters(), halved.model.parameters(), strict=True):
        assert torch.allclose(p, q, rtol=1e-5, atol=1e-6)
    job.optimizer.flush()
    halved.optimizer.flush()


def case_an_overflow_is_not_predicted() -> None:
    job = Job(DELAYED)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1000)
    for step in range(8):
        job.optimizer.zero_grad()
        loss = loss_of(job.model, job.data.next())
        assert bool(loss.isfinite()), f"step {step}"
        poison = float("inf") if step == 3 and stock.rank() == 1 else 1.0
        scaler.scale(loss * poison).backward()
        scaler.step(job.optimizer)
        scaler.update()
        assert equal_on_all_ranks(job.model.parameters())
    assert all(bool(p.isfinite().all()) for p in job.model.parameters())
    job.optimizer.flush()


if __name__ == "__main__":
    main(globals())
