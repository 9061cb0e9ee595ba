"""Training in wire formats: the trajectory is that of plain torch with the same codec."""

from __future__ import annotations

import copy
from typing import Any

import horovod.torch as stock
import torch
from torch import nn

import deft_horovod.torch as hvd
from deft_horovod.errors import NotSupportedError
from deft_horovod.plan import Plan
from deft_horovod.runtime.reduce.in_flight import KEY
from tests.parallel.scripts.device import DEVICE
from tests.parallel.scripts.format_jobs import Job, Ledger, wide
from tests.parallel.scripts.format_references import (
    ALL_INFINITE,
    ONE_INFINITE,
    SUMMED_IN_ORDER,
    Halves,
    Reference,
    difference,
    mixed_precision_loss,
    padded,
    skip_one,
)
from tests.parallel.scripts.late_plans import Late, adamw, plan_of, sgd
from tests.parallel.scripts.reporting import cases_in, run_cases
from tests.parallel.scripts.training import (
    Data,
    assert_equal_models,
    equal_on_all_ranks,
    gathered,
    loss_of,
    mlp,
)

STEPS = 9
MANY_STEPS = 200
FORMATS = ("f16", "bf16", "e4m3", "int8", "int4")


def case_the_trajectory_is_that_of_the_codec() -> None:
    if stock.size() > SUMMED_IN_ORDER:
        return
    for wire_format in FORMATS:
        for make in (sgd, adamw):
            job, reference = Job(wire_format, make), Reference(wire_format, make)
            for step in range(STEPS):
                job.step()
                reference.step()
                what = f"{wire_format}, {make.__name__}, step {step}"
                assert_equal_models(job.model, reference.model, what)
            assert job.optimizer.stats()["plans"] == 1


def case_nothing_is_lost() -> None:
    """Over many steps: what was applied and what is left is what was produced."""
    for wire_format, model, steps in (("int8", wide(), STEPS), ("int4", mlp(), MANY_STEPS)):
        job = Job(wire_format, model=model)
        parameters = list(job.model.parameters())
        produced = [torch.zeros_like(p, dtype=torch.float64) for p in parameters]
        applied = [torch.zeros_like(p, dtype=torch.float64) for p in parameters]
        for _ in range(steps):
            job.optimizer.zero_grad()
            loss_of(job.model, job.data.next()).backward()
            for i, p in enumerate(parameters):
                produced[i] += p.grad
            job.optimizer.synchronize()
            for i, p in enumerate(parameters):
                applied[i] += p.grad
            with job.optimizer.skip_synchronize():
                job.optimizer.step()
        rests = job.optimizer.state_dict()[KEY]["rests"]
        for i, (name, p) in enumerate(job.model.named_parameters()):
            nothing = torch.zeros(p.numel())
            left = rests["values"].get(name, nothing)
            left = left + stock.size() * padded(rests["sums"].get(name, nothing), p.numel())
            left = left.to(p.device)
            mine = produced[i] - left.reshape(p.shape).double()
            wanted = stock.allreduce(mine, name=f"lost.{wire_format}.{name}")
            assert torch.allclose(applied[i], wanted, rtol=0, atol=1e-4 * float(mine.abs().max()))
            assert left.abs().max() > 0


def case_after_a_flush_of_rests_nothing_is_left() -> None:
    for wire_format, model in (("int8", wide()), ("int4", mlp())):
        ledger = Ledger(wire_format, model=model)
        for steps in (110, 3):
            for _ in range(steps):
                ledger.step()
            assert ledger.left() > 0
            ledger.optimizer.flush(rests=True)
            ledger.step()
            assert ledger.left() == 0
            ledger.check(f"{wire_format}, after {steps} steps")
    assert ledger.optimizer.stats()["plans"] == 1


def case_rests_are_flushed_beside_late_updates() -> None:
    timings = [Late(), Late(delay=1), Late(gated=True), Late(merged=2), Late(delay=1), Late()]
    model = mlp()
    late = plan_of(model, timings, wire_format="int4")
    exact = [
        generation.bucket
        for generation in late.generations
        if generation.apply_step > generation.first_step
    ]
    fields = late.model_dump()
    for bucket in exact:
        fields["buckets"][bucket]["format"] = "f32"
    ledger = Ledger("int4", model=model, plan=Plan.model_validate(fields))
    for steps in (11, 2):
        for _ in range(steps):
            ledger.step()
        assert ledger.left() > 0
        ledger.optimizer.flush(rests=True)
        ledger.optimizer.flush()  # begins the cycle of the plan once more
        ledger.step()
        assert ledger.left() == 0
        ledger.check(f"after {steps} steps")


def case_rests_are_flushed_between_steps_alone() -> None:
    ledger = Ledger("int8", backward_passes_per_step=2)
    for _ in range(STEPS):
        ledger.step()
    ledger.optimizer.zero_grad()
    loss_of(ledger.model, ledger.data.next()).backward()  # half of a step has left nowhere
    ledger.optimizer.flush(rests=True)
    loss_of(ledger.model, ledger.data.next()).backward()
    try:
        ledger.optimizer.flush(rests=True)
    except NotSupportedError as error:
        assert "between backward() and step()" in str(error)
    else:
        raise AssertionError("rests were flushed in the middle of a step")
    ledger.end_step()
    assert ledger.left() == 0
    ledger.check("with two passes in a step")


def case_an_exact_plan_delivers_what_was_left() -> None:
    for wire_format, model in (("int8", wide()), ("int4", mlp())):
        ledger = Ledger(wire_format, model=model)
        for _ in range(STEPS):
            ledger.step()
        if stock.rank() == 0:
            plan_of(model, [Late()] * 6).save(ledger.file)
        stock.barrier()
        ledger.optimizer.flush(rests=stock.size() == SUMMED_IN_ORDER)
        if stock.rank() == stock.size() - 1:
            ledger.optimizer._engine.planned.session.request_replan()
        for _ in range(4):
            ledger.step()
        assert ledger.optimizer.stats()["plans"] == 2
        assert list(ledger.optimizer.stats()["formats"]) == ["f32"]
        ledger.check(f"{wire_format}, after another plan")
        ledger.optimizer.flush(rests=True)  # as flush()
        ledger.step()
        ledger.check(f"{wire_format}, after another step")


def case_replicas_stay_equal() -> None:
    for options in ({"op": stock.Sum}, {"gradient_predivide_factor": 2.0}):
        job = Job("int8", model=wide(), **options)
        for _ in range(STEPS):
            job.step()
        assert equal_on_all_ranks(job.model.parameters()), f"the replicas differ, {options}"
        (found,) = job.optimizer.stats()["formats"].values()
        assert found["message_bytes"] < 0.3 * found["bytes"]
        assert 1e-3 < found["error"] < 0.05
        # Each bucket has one message a step: what links have carried is what messages have.
        assert job.optimizer.stats()["bytes"] == STEPS * found["message_bytes"]
    halves = Job("int4", backward_passes_per_step=2)
    for _ in range(STEPS):
        halves.optimizer.zero_grad()
        for _ in range(2):
            loss_of(halves.model, halves.data.next()).backward()
        halves.optimizer.step()
    assert equal_on_all_ranks(halves.model.parameters())


def _resumed(job: Job) -> tuple[nn.Module, Any]:
    """Another model and optimizer that have loaded what these have now."""
    model = wide(seed=5)
    optimizer = job.wrap(model)
    model.load_state_dict(copy.deepcopy(job.model.state_dict()))
    optimizer.load_state_dict(copy.deepcopy(job.optimizer.state_dict()))
    return model, optimizer


def _train_both(job: Job, model: nn.Module, optimizer: Any) -> None:
    batch = job.data.next()
    for net, mine in ((job.model, job.optimizer), (model, optimizer)):
        mine.zero_grad()
        loss_of(net, batch).backward()
        mine.step()


def case_resumed_training_goes_on_bit_for_bit() -> None:
    for rests in (False, stock.size() == SUMMED_IN_ORDER):
        job = Job("int8", adamw, model=wide())
        for _ in range(STEPS):
            job.step()
        job.optimizer.flush(rests=rests)
        resumed = _resumed(job)
        for step in range(STEPS):
            _train_both(job, *resumed)
            assert_equal_models(job.model, resumed[0], f"step {step} after the checkpoint")


def case_a_checkpoint_remembers_that_rests_are_flushed() -> None:
    """More than two ranks add up what is not rounded in an order that Horovod chooses."""
    ledger = Ledger("int4", model=wide())
    for _ in range(STEPS):
        ledger.step()
    ledger.optimizer.flush(rests=True)
    model, optimizer = _resumed(ledger)
    _train_both(ledger, model, optimizer)
    for ours, theirs in zip(ledger.parameters, model.parameters(), strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-6)
    for mine in (ledger.optimizer, optimizer):
        assert not any(mine.state_dict()[KEY]["rests"].values())


def case_what_is_not_finite_is_skipped_everywhere() -> None:
    job = Job("int8")
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1000)
    for step in range(STEPS):
        job.optimizer.zero_grad()
        loss = loss_of(job.model, job.data.next())
        if step == STEPS // 2 and stock.rank() == 0:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        scaler.step(job.optimizer)
        scaler.update()
    assert scaler.get_scale() == 2.0, scaler.get_scale()
    assert all(bool(p.isfinite().all()) for p in job.model.parameters())
    assert equal_on_all_ranks(job.model.parameters())
    assert len({tuple(row) for row in gathered([scaler.get_scale()])}) == 1


def case_a_loss_scaler_skips_on_all_ranks_and_goes_on() -> None:
    """On four ranks the matrix is summed by owners."""
    job = Job("int8", model=wide())
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000)
    for step in range(STEPS):
        if step in (ALL_INFINITE, ONE_INFINITE):
            skip_one(job, scaler, step)
            continue
        before = copy.deepcopy(job.model.state_dict())
        job.optimizer.zero_grad()
        scaler.scale(mixed_precision_loss(job, step)).backward()
        scaler.step(job.optimizer)
        scaler.update()
        assert not any(torch.equal(p, before[n]) for n, p in job.model.state_dict().items())
    assert all(bool(p.isfinite().all()) for p in job.model.parameters())
    assert equal_on_all_ranks(job.model.parameters())
    assert gathered([scaler.get_scale()]) == [[256.0]] * stock.size()


def case_f16_beside_the_fp16_compression_of_horovod() -> None:
    """Equal where fp16 has what each rank sends and their sum. Elsewhere Horovod rounds the sum
    once more, and ours sends what rounding has left."""
    if stock.size() > SUMMED_IN_ORDER:
        return

    own = torch.Generator().manual_seed(100 + stock.rank())
    few_bits = Halves()
    for step in range(STEPS):
        shapes = [p.shape for p in few_bits.model.parameters()]
        drawn = [torch.randint(-512, 512, shape, generator=own) / 64 for shape in shapes]
        gradients = [gradient.to(DEVICE) for gradient in drawn]
        assert not difference(few_bits.step(gradients)), f"few bits, step {step}"
    assert_equal_models(few_bits.job.model, few_bits.model, "few bits")
    same, halves = torch.Generator().manual_seed(7), Halves()
    for step in range(STEPS):
        found = difference(halves.step(halves.normal(same)))
        assert not found, f"the same on both ranks, step {step}: {found}"
        halves.clearrests_of()
    assert_equal_models(halves.job.model, halves.model, "without rests")
    assert not difference(halves.step(halves.normal(same)))
    assert difference(halves.step(halves.normal(same))), "rests are sent"
    pairs = Halves().step(halves.normal(own))
    assert difference(pairs), "the sum was not rounded"
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, rtol=2**-10, atol=1e-7)


def case_clipped_gradients_are_equal() -> None:
    job = Job("int8")
    for _ in range(STEPS):
        job.optimizer.zero_grad()
        loss_of(job.model, job.data.next()).backward()
        job.optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(job.model.parameters(), 0.01)
        with job.optimizer.skip_synchronize():
            job.optimizer.step()
    assert equal_on_all_ranks(job.model.parameters())


def case_uneven_data_with_join() -> None:
    """The rank that is in join() gives zeros, and all that it sent before counts."""
    forward = Late(gated=True, forward=True)
    for timings in ([Late()] * 6, [Late(gated=True)] * 3 + [forward] * 3):
        model = wide()
        job = Ledger("int8", model=model, plan=plan_of(model, timings, wire_format="int8"))
        job.step()
        job.optimizer.flush(rests=True)  # not every rank has the step after which nothing is left
        for _ in range(2):
            for _ in range(3 * (stock.size() - stock.rank() - 1)):
                stock.allreduce(torch.ones(1), name="of the script")
                job.step()
            assert hvd.join() == 0
            job.follow(0)
            job.step()
        job.optimizer.flush(rests=True)
        job.step()
        assert job.left() == 0.0
        job.check("join")


def case_accuracy_in_one_word() -> None:
    """Formats are measured, and planned where they help. Loopback needs none, or few."""
    for word in ("exact", "equal", "fast"):
        model = mlp()
        optimizer = hvd.DistributedOptimizer(
            sgd(model),
            model.named_parameters(),
            policy="least_stale",
            config={
                "accuracy": word,
                "profile_steps": 2,
                "profile_warmup_steps": 1,
                "probe_s": 0.1,
            },
        )
        data = Data()
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, data.next()).backward()
            optimizer.step()
        assert optimizer.stats()["plans"] >= 2
        assert equal_on_all_ranks(model.parameters()), word
        (link, *_) = optimizer.profile.links
        wanted = {"exact": [], "equal": ["f16", "int8"], "fast": ["f16", "int8", "int4"]}
        assert [cost.format for cost in link.formats] == wanted[word]
        for cost in link.formats:
            assert 0.0 < cost.encode_us_per_byte < 0.1, cost
            assert 0.0 < cost.decode_us_per_byte < 0.1, cost


def case_every_bucket_tells_what_rounding_has_left_of_its_gradients() -> None:
    model = wide()
    job = Ledger("int4", model=model, plan=plan_of(model, [Late()] * 6, wire_format="int4"))
    job.step()
    slots = job.optimizer.plan.slots
    errors = job.optimizer._engine.planned.rounding_errors()
    told = sorted(name for one in errors for name in one.gradients)
    assert told == sorted(slot.name for slot in slots if not slot.exact)
    assert all(one.format == "int4" and 0.0 < one.error < 0.5 for one in errors), errors


def case_auto_tries_the_fewest_bytes_where_it_may_round() -> None:
    model = wide()
    optimizer = hvd.DistributedOptimizer(
        sgd(model),
        model.named_parameters(),
        config={
            "accuracy": "equal",
            "profile_steps": 2,
            "profile_warmup_steps": 1,
            "probe_s": 0.1,
            "trial_steps": 2,
            "trial_rounds": 1,
        },
    )
    data, formats = Data(), {}
    while (stats := optimizer.stats())["phase"] != "settled":
        if stats["phase"] == "trial" and optimizer.plan is not None:
            formats[stats["running"]] = {bucket.format for bucket in optimizer.plan.buckets}
        optimizer.zero_grad()
        loss_of(model, data.next()).backward()
        optimizer.step()
    tried = ["stock", "bucket", "priority", "least_stale", "fewest_bytes"]
    assert list(stats["trials_us"]) == tried, stats
    assert "int8" in formats["fewest_bytes"], formats
    assert equal_on_all_ranks(model.parameters())


if __name__ == "__main__":
    hvd.init()
    run_cases(cases_in(globals()))
