"""Updates that come late: the trajectory is that of plain torch, bit for bit, on two ranks."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import horovod.torch as stock
import torch

import deft_horovod.torch as hvd
from deft_horovod.runtime.reduce.in_flight import KEY
from tests.parallel.scripts.device import DEVICE, join_device
from tests.parallel.scripts.late_plans import Late, LateJob, Make, Reference, adamw, plan_of, sgd
from tests.parallel.scripts.training import assert_equal_models, equal_on_all_ranks, loss_of, mlp
from tests.parallel.scripts.twins import main

STEPS = 9
DELAYED = [Late(delay=1)] * 6
FORWARD = [Late(delay=1, forward=True)] * 6
MERGED = [Late(delay=1, merged=2)] * 6
SYNC_MERGED = [Late(merged=2)] * 6
MIXED = [
    Late(delay=1, merged=4, forward=True),
    Late(delay=1, merged=4),
    Late(gated=True, forward=True),
    Late(delay=2),
    Late(),
    Late(delay=1, merged=2),
]


class Job(LateJob):
    """And its reference. Nothing is corrected."""

    def __init__(self, timings: Sequence[Late], make: Make = sgd) -> None:
        super().__init__(timings, make, "none")
        twin = mlp()
        self.reference = Reference(twin, make(twin), timings, stock.size())

    def check(self, what: str) -> None:
        assert equal_on_all_ranks(self.model.parameters()), f"{what}: the replicas differ"
        assert_equal_models(self.model, self.reference.model, what)

    def gated_in_time(self) -> None:
        """Updates behind gates, so that parameters can be compared."""
        self.model.state_dict()


def trajectory(timings: Sequence[Late], make: Make) -> None:
    job = Job(timings, make)
    for step in range(STEPS):
        job.train(1)
        job.gated_in_time()
        job.reference.train(1)
        job.check(f"after step {step}")
    job.optimizer.flush()
    job.reference.flush()
    job.check("after the flush")
    job.train(4)
    job.gated_in_time()
    job.reference.train(4)
    job.check("after four steps from the flush on")


def case_delay_sgd() -> None:
    trajectory(DELAYED, sgd)


def case_delay_adamw() -> None:
    trajectory(DELAYED, adamw)


def case_delay_in_the_next_forward() -> None:
    trajectory(FORWARD, sgd)


def case_merged_sgd_takes_the_sum() -> None:
    trajectory(MERGED, sgd)


def case_merged_adamw_takes_the_mean() -> None:
    trajectory(MERGED, adamw)


def case_merged_without_delay() -> None:
    trajectory(SYNC_MERGED, sgd)


def case_mixed_sgd() -> None:
    trajectory(MIXED, sgd)


def case_mixed_adamw() -> None:
    trajectory(MIXED, adamw)


def _resume_equals_continue(timings: Sequence[Late], make: Make, after: int) -> None:
    job = Job(timings, make)
    job.train(after)
    resumed, other = job.resumed()
    ahead = copy.deepcopy(job.data)
    job.train(STEPS)
    job.data = ahead
    job.train(STEPS, other, resumed)
    for optimizer in (job.optimizer, other):
        optimizer.flush()
    assert_equal_models(resumed, job.model, f"resumed after {after} steps")
    assert other.stats()["dropped"] == 0


def case_resume_equals_continue() -> None:
    for after in (1, 2, 3, 4, 7):
        _resume_equals_continue(MIXED, sgd, after)


def case_resume_equals_continue_adamw() -> None:
    for after in (3, 4):
        _resume_equals_continue(MIXED, adamw, after)


def case_one_rank_alone_may_save() -> None:
    job = Job(MIXED)
    for step in range(6):
        job.train(1)
        if stock.rank() == step % 2:
            state = job.optimizer.state_dict()
            torch.optim.SGD(mlp().parameters(), lr=0.1).load_state_dict(state)  # plain torch can
    job.gated_in_time()
    job.reference.train(6)
    job.check("with one rank saving")


def case_a_checkpoint_that_not_all_load_is_dropped_and_counted() -> None:
    job = Job(DELAYED)
    job.train(3)
    state = job.optimizer.state_dict()
    other_model = mlp()
    other = job.wrap(other_model)
    if stock.rank() == 0:
        other.load_state_dict(state)
    job.train(2, other, other_model)
    dropped = stock.allgather(torch.tensor([other.stats()["dropped"]]), name="late.dropped")
    assert dropped.tolist() == [6, 0], dropped
    job.optimizer.flush()
    other.flush()


def case_discarding_a_step_voids_its_generation_only() -> None:
    job = Job(DELAYED)
    job.train(3)
    job.reference.train(3)
    loss_of(job.model, job.data.next()).backward()
    job.optimizer.zero_grad()  # thrown away; what the step before sent is applied
    skip_a_step(job.reference)
    job.train(2)
    job.reference.train(2)
    job.check("after a discarded step")
    assert job.optimizer.stats()["dropped"] == 6
    job.optimizer.flush()


def skip_a_step(reference: Reference) -> None:
    for data in reference.data:
        data.next()
    for i, p in enumerate(reference.model.parameters()):
        p.grad = reference.due.pop((i, reference.step), None)
    reference.optimizer.step()
    reference.step += 1


def case_saving_inside_a_window_of_passes() -> None:
    """Nothing of this step is on its way yet: what is saved is the boundary before it."""
    job = Job(DELAYED)
    job.train(3)
    expected = job.optimizer.state_dict()
    job.optimizer.set_backward_passes_per_step(2)
    loss_of(job.model, job.data.next()).backward()
    found = job.optimizer.state_dict()
    for (_, _, a), (_, _, b) in zip(expected[KEY]["memory"], found[KEY]["memory"], strict=True):
        assert torch.equal(a, b)
    assert found[KEY]["step"] == expected[KEY]["step"]
    loss_of(job.model, job.data.next()).backward()
    job.optimizer.step()
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())


def case_a_checkpoint_of_late_updates_does_not_overrule_options() -> None:
    """What was in flight is applied, and training goes on as it is asked for now."""
    for policy, config in (("bucket", {}), ("stock", {}), ("auto", {"max_delay": 0})):
        job = Job(DELAYED)
        job.train(3)
        state = job.optimizer.state_dict()
        model = mlp()
        model.load_state_dict(job.model.state_dict())
        inner = sgd(model)
        other = hvd.DistributedOptimizer(
            inner, model.named_parameters(), policy=policy, config=config
        )
        other.load_state_dict(state)
        job.train(2, other, model)
        stats = other.stats()
        assert (stats["late"], stats["dropped"]) == (False, 0), stats
        other.flush()
        assert equal_on_all_ranks(model.parameters())
        job.optimizer.flush()


def case_learning_rate_is_that_of_the_boundary() -> None:
    job = Job(DELAYED)
    schedules = [
        torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        for optimizer in (job.optimizer, job.reference.optimizer)
    ]
    for _ in range(5):
        job.train(1)
        job.reference.train(1)
        for schedule in schedules:
            schedule.step()
        job.check("with a schedule")
    job.optimizer.flush()


def case_uneven_data_with_join() -> None:
    job = Job(MIXED)
    job.train(6 if stock.rank() == 0 else 3)
    last = hvd.join(join_device())
    stock.broadcast_parameters(job.model.state_dict(), root_rank=last)
    hvd.broadcast_optimizer_state(job.optimizer, root_rank=last)
    job.train(3)
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())


def _scaled(job: Job, scaler: torch.amp.GradScaler, poison: bool = False) -> None:
    job.optimizer.zero_grad()
    loss = loss_of(job.model, job.data.next())
    scaler.scale(loss * float("inf") if poison else loss).backward()
    scaler.step(job.optimizer)
    scaler.update()


def case_a_loss_scale_is_that_of_the_gradients_own_step() -> None:
    """The scale doubles all the time; powers of two leave no trace in the result."""
    for timings in (DELAYED, MIXED):
        job = Job([late if late.merged == 1 else Late(delay=1) for late in timings])
        scaler = torch.amp.GradScaler(DEVICE.type, init_scale=4.0, growth_interval=1)
        for step in range(STEPS):
            _scaled(job, scaler)
            job.reference.train(1)
            job.check(f"scaled, step {step}")
        assert scaler.get_scale() == 4.0 * 2**STEPS
        job.optimizer.flush()
        job.reference.flush()
        job.check("scaled, after the flush")


def case_an_overflow_is_dropped_on_all_ranks() -> None:
    job = Job(DELAYED)
    scaler = torch.amp.GradScaler(DEVICE.type, init_scale=4.0, growth_interval=1000)
    for step in range(6):
        _scaled(job, scaler, poison=step == 2 and stock.rank() == 1)
        assert equal_on_all_ranks(job.model.parameters())
    assert all(bool(p.isfinite().all()) for p in job.model.parameters())
    assert job.optimizer.stats()["dropped"] == 6
    assert scaler.get_scale() == 2.0
    job.optimizer.flush()


def case_an_overflow_in_a_short_last_window() -> None:
    job = Job(DELAYED)
    job.optimizer.set_backward_passes_per_step(2)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for step in range(8):
        for _ in range(1 if step % 2 else 2):
            inputs, targets = job.data.next()
            if (step, stock.rank()) == (3, 1):
                inputs = inputs * float("inf")
            scaler.scale(loss_of(job.model, (inputs, targets))).backward()
        scaler.step(job.optimizer)
        scaler.update()
        job.optimizer.zero_grad()
        scales = stock.allgather(torch.tensor([scaler.get_scale()]), name="late.scales").tolist()
        assert scales[0] == scales[1], f"step {step}: {scales}"
    assert scales[0] < 1024.0
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())
    assert all(bool(p.isfinite().all()) for p in job.model.parameters())


def case_totals_survive_a_flush() -> None:
    job = Job(DELAYED)
    job.train(4)
    before = job.optimizer.stats()["messages"]
    job.optimizer.flush()
    assert job.optimizer.stats()["messages"] >= before > 0


def case_memory_is_what_the_plan_says() -> None:
    job = Job(MIXED)
    job.train(2)
    plan = plan_of(job.model, MIXED)
    stated = plan.buffers * sum(4 * arena.elements for arena in plan.arenas)
    assert job.optimizer.stats()["buffer_bytes"] == stated
    job.optimizer.flush()


if __name__ == "__main__":
    main(globals())
