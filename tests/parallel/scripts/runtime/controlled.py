"""Whole courses on real ranks: profile, plans, trials, drift; and what training does meanwhile."""

from __future__ import annotations

import os
import time
from typing import Any
from unittest import SkipTest

import horovod.torch as stock
import torch
from torch import nn

import deft_horovod.torch as hvd
from deft_horovod.errors import AgreementError, PlanError
from tests.parallel.scripts.late_plans import Late, plan_of, saved
from tests.parallel.scripts.training import (
    Data,
    assert_equal_models,
    equal_on_all_ranks,
    gathered,
    loss_of,
    mlp,
)
from tests.parallel.scripts.twins import main

QUICK = {"profile_warmup_steps": 1, "profile_steps": 2, "probe_s": 0.05, "warmup_steps": 0}
TRIALS = {"trial_steps": 2, "trial_rounds": 2}


class Job:
    """A model that trains, and beside it the same with stock Horovod."""

    def __init__(self, policy: str, **config: Any) -> None:
        self.model, self.reference = mlp(), mlp()
        self.optimizer: Any = hvd.DistributedOptimizer(
            self._sgd(self.model),
            self.model.named_parameters(),
            policy=policy,
            config={**QUICK, **config},
        )
        self.stock = stock.DistributedOptimizer(
            self._sgd(self.reference), self.reference.named_parameters(prefix="reference")
        )
        self.data = Data()
        self.pause_s = 0.0

    def _sgd(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def train(self, steps: int, reference: bool = True) -> None:
        for _ in range(steps):
            batch = self.data.next()
            self.optimizer.zero_grad()
            loss_of(self.model, batch).backward()
            time.sleep(self.pause_s)
            self.optimizer.step()
            if reference:
                self.stock.zero_grad()
                loss_of(self.reference, batch).backward()
                self.stock.step()

    def check(self, what: str) -> None:
        self.optimizer.flush()
        assert equal_on_all_ranks(self.model.parameters()), f"{what}: the replicas differ"
        assert_equal_models(self.model, self.reference, what)

    def train_until(self, phase: str, limit: int = 200) -> None:
        for _ in range(limit):
            if self.optimizer.stats()["phase"] == phase:
                return
            self.train(1)
        raise AssertionError(f"phase {phase} did not come: {self.optimizer.stats()}")


def case_least_stale_is_synchronous_by_default() -> None:
    job = Job("least_stale")
    seen = []
    for _ in range(14):
        job.train(1)
        job.check("least_stale")
        seen.append(job.optimizer.stats()["phase"])
    assert seen == ["profile"] * 2 + ["settled"] * 12, seen
    stats = job.optimizer.stats()
    assert (stats["running"], stats["late"], stats["plans"]) == ("least_stale", False, 2)
    expected = stats["prediction"]
    assert expected["step_us"] >= expected["bound_us"] > 0.0
    assert expected["staleness"], expected


def case_auto_tries_all_and_stays_equal_to_stock() -> None:
    job = Job("auto", accuracy="exact", **TRIALS)
    ran = []
    for _ in range(45):
        job.train(1)
        job.check("auto")
        stats = job.optimizer.stats()
        ran.append((stats["phase"], stats["running"]))
    tried = [name for phase, name in dict.fromkeys(ran) if phase == "trial"]
    assert tried == ["stock", "bucket", "priority", "least_stale"], tried
    assert ran[-1][0] == "settled"
    stats = job.optimizer.stats()
    assert set(stats["trials_us"]) == set(tried)
    assert all(us > 0.0 for us in stats["trials_us"].values())
    rows = gathered([float(stats["plans"])])
    assert rows[0] == rows[1]


def case_deft_opts_in_and_waits_for_the_warm_up() -> None:
    job = Job("deft", warmup_steps=12)
    for step in range(12):
        assert not job.optimizer.stats()["late"], step
        job.train(1)
    job.check("before the warm-up was over")
    job.train(20, reference=False)
    stats = job.optimizer.stats()
    assert (stats["phase"], stats["running"]) == ("settled", "deft")
    assert job.optimizer.plan.policy == "deft"
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())
    assert stats["dropped"] == 0


def case_least_stale_may_come_late() -> None:
    job = Job("least_stale", max_delay=1, max_merge=2)
    for _ in range(25):
        job.train(1, reference=False)
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())
    assert job.optimizer.stats()["dropped"] == 0


def case_a_second_link_is_measured_and_changes_no_result() -> None:
    job = Job("least_stale", second_interface="lo")
    for _ in range(10):
        job.train(1)
        job.check("two links")
    assert job.optimizer.stats()["phase"] == "settled"
    late = Job("least_stale", second_interface="lo", max_delay=1)
    late.train(12, reference=False)
    late.optimizer.flush()
    assert equal_on_all_ranks(late.model.parameters())


def case_slower_steps_bring_a_new_plan() -> None:
    job = Job("least_stale", drift=1.0, drift_steps=4)
    job.pause_s = 0.005
    job.train_until("settled")
    job.train(6)
    plans = job.optimizer.stats()["plans"]
    job.pause_s = 0.08 if stock.rank() == 0 else 0.005
    job.train(10)
    job.pause_s = 0.005
    job.train_until("settled")
    job.check("after a new plan")
    stats = job.optimizer.stats()
    assert stats["plans"] >= plans + 2, stats
    assert stats["replans"]["asked by a rank"] >= 1, stats


def case_restless_steps_are_measured_again_once() -> None:
    """Times that change again and again would leave no steps to train in."""
    job = Job("least_stale", drift=1.0, drift_steps=2)
    job.pause_s = 0.005
    job.train_until("settled")
    for number in range(12):
        job.pause_s = 0.04 if number % 2 else 0.005
        job.train(4)
    job.train_until("settled")
    job.check("restless")
    assert job.optimizer.stats()["replans"]["asked by a rank"] == 1, job.optimizer.stats()


def case_drift_is_seen_where_stock_was_kept() -> None:
    job = Job("auto", drift=1.0, drift_steps=4, min_gain=1.0, trial_steps=1, trial_rounds=1)
    job.pause_s = 0.005
    job.train_until("settled")
    assert job.optimizer.stats()["running"] == "stock"
    job.train(8)
    job.pause_s = 0.08 if stock.rank() == 1 else 0.005
    job.train(8)
    job.pause_s = 0.005
    assert job.optimizer.stats()["replans"]["asked by a rank"] >= 1
    job.train_until("settled")
    job.check("stock was kept")


def case_freezing_a_layer_measures_again() -> None:
    job = Job("least_stale")
    job.train(6)
    for model in (job.model, job.reference):
        for parameter in model[0].parameters():
            parameter.requires_grad_(False)
    job.stock = stock.DistributedOptimizer(
        torch.optim.SGD([p for p in job.reference.parameters() if p.requires_grad], lr=0.05),
        [(f"frozen.{n}", p) for n, p in job.reference.named_parameters() if p.requires_grad],
    )
    plans = job.optimizer.stats()["plans"]
    job.train(8, reference=False)
    assert job.optimizer.stats()["plans"] >= plans + 2
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())


def case_layers_that_freeze_again_and_again_are_not_measured_every_time() -> None:
    job = Job("auto", drift_steps=5, **TRIALS)
    job.train_until("settled")
    first = [*job.model[0].parameters()]
    before = [parameter.detach().clone() for parameter in first]
    for number in range(8):
        for parameter in first:
            parameter.requires_grad_(bool(number % 2))
        job.train(4, reference=False)
    stats = job.optimizer.stats()
    assert (stats["phase"], stats["running"]) == ("settled", "stock"), stats
    assert stats["replans"]["end of profile"] <= 2, stats
    assert not any(torch.equal(a, b) for a, b in zip(before, first, strict=True))
    debt = job.optimizer._engine._control._debt
    if stock.rank() == 1:
        debt._now_s = lambda: time.monotonic() + 1000.0
    assert debt.waits
    job.train(7, reference=False)
    assert not debt.waits
    job.train(30, reference=False)
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())


def case_parameters_change_as_a_leg_ends() -> None:
    """All ranks turn to the next phase then, before anybody has read that one asks for more."""
    for phase in ("profile", "trial"):
        job = Job("auto", **TRIALS)
        first = [*job.model[0].parameters()]
        for parameter in first:
            parameter.requires_grad_(False)
        before = [parameter.detach().clone() for parameter in first]
        job.train(1, reference=False)
        phases = job.optimizer._engine._control._phases
        for _ in range(100):
            if phases.phase.kind == phase and phases.steps == phases.phase.steps - 1:
                break
            job.train(1, reference=False)
        assert phases.phase.kind == phase
        asked = job.optimizer.stats()["replans"].get("asked by a rank", 0)
        for parameter in first:
            parameter.requires_grad_(True)
        job.train(1, reference=False)
        assert job.optimizer.stats()["replans"]["asked by a rank"] == asked + 1, phase
        job.train(30, reference=False)
        job.optimizer.flush()
        assert equal_on_all_ranks(job.model.parameters())
        assert not any(torch.equal(a, b) for a, b in zip(before, first, strict=True))


def case_a_profile_survives_a_reset() -> None:
    if stock.mpi_enabled():
        raise SkipTest("MPI cannot begin anew within a process")
    job = Job("least_stale")
    job.train(6)
    hvd.shutdown()
    # Under its name the ranks of a host ask the launcher for each other's addresses. It may still
    # have the old ones: once all are done with one such name, it forgets who is done with others
    # (horovod/runner/http/http_server.py, do_DELETE). A rank that gets one ends, inside Horovod.
    os.environ["HOROVOD_HOSTNAME"] += "-again"
    hvd.init()
    job.train(1, reference=False)
    assert job.optimizer.stats()["phase"] == "settled", job.optimizer.stats()
    job.train(4, reference=False)
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())


def case_a_plan_of_another_model_is_refused_on_all_ranks() -> None:
    job = Job("bucket")
    job.train(2)
    plan = plan_of(nn.Sequential(nn.Linear(3, 4)), [Late()] * 2)
    other = Job("bucket", plan_file=saved(plan))
    try:
        other.train(1, reference=False)
    except (PlanError, AgreementError) as error:
        said = str(error)
    else:
        raise AssertionError("it was accepted")
    assert ("was not made for this model" in said) == (stock.rank() == 0), said


def case_a_saved_plan_runs_again() -> None:
    job = Job("least_stale", max_delay=1)
    assert job.optimizer.plan is None
    job.train(8, reference=False)
    plan, profile = job.optimizer.plan, job.optimizer.profile
    assert plan.prediction.profile == profile.hash()
    again = Job("auto", plan_file=saved(plan))
    again.train(3, reference=False)
    assert again.optimizer.plan == plan
    for optimizer in (job.optimizer, again.optimizer):
        optimizer.flush()
    assert equal_on_all_ranks(again.model.parameters())


if __name__ == "__main__":
    main(globals())
