"""Late updates under an accuracy budget, with gradients that turn as the test wants."""

from __future__ import annotations

from typing import Any, Final
from unittest import mock

import horovod.torch as stock
import torch
from torch import nn

import deft_horovod.torch as hvd
from deft_horovod.profile import Profile
from deft_horovod.runtime.measure.profiler import Profiler
from deft_horovod.solver.least_stale.refine import with_margin
from tests.parallel.scripts.training import assert_equal_models, equal_on_all_ranks, gathered
from tests.parallel.scripts.twins import main

WARM = {"profile_warmup_steps": 1, "profile_steps": 2, "probe_s": 0.05, "warmup_steps": 45}
# Nothing but the guard shall bring a new plan.
STEADY = {"drift": 100.0, "max_delay": 1, "max_merge": 1}
WINDOW = 100
BUDGET = 0.02
UNASKED: Final = {"max_delay": None, "max_merge": None}
LEFT_TO_AUTO: Final = {**UNASKED, "accuracy_budget": BUDGET}
# Times what is measured: so slow a link leaves something to delay however busy the machine is.
SLOWER: Final = 200.0
_MEASURED: Final = Profiler.profile


class Linear(nn.Module):
    """Its gradients are whatever it is called with."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.parts = nn.ParameterList([nn.Parameter(torch.randn(n)) for n in (5000, 300, 7)])

    def forward(self, towards: list[torch.Tensor]) -> torch.Tensor:
        pairs = zip(self.parts, towards, strict=True)
        return torch.stack([(part * to).sum() for part, to in pairs]).sum()


class Job:
    """Gradients are `base`, times -1 in every other step if they turn, and noise of each rank."""

    def __init__(self, policy: str = "deft", noise: float = 0.0, **config: Any) -> None:
        self.model, self.reference = Linear(), Linear()
        torch.manual_seed(5)
        self.base = [torch.randn(p.shape) for p in self.model.parameters()]
        self.noise = noise
        self.random = torch.Generator().manual_seed(stock.rank())
        self.step = 0
        self.optimizer: Any = hvd.DistributedOptimizer(
            torch.optim.SGD(self.model.parameters(), lr=1e-3),
            self.model.named_parameters(),
            policy=policy,
            config={**WARM, **STEADY, **config},
        )
        self.plain = torch.optim.SGD(self.reference.parameters(), lr=1e-3)

    def set_rate(self, lr: float) -> None:
        self.optimizer.flush()  # what is on its way would be applied with the new one
        for optimizer in (self.optimizer, self.plain):
            optimizer.param_groups[0]["lr"] = lr

    def train(self, steps: int, *, turning: bool) -> None:
        for _ in range(steps):
            sign = -1.0 if turning and self.step % 2 else 1.0
            towards = [
                sign * base + self.noise * torch.randn(base.shape, generator=self.random)
                for base in self.base
            ]
            self.optimizer.zero_grad()
            self.model(towards).backward()
            self.optimizer.step()
            self.plain.zero_grad()
            self.reference([sign * base for base in self.base]).backward()
            self.plain.step()
            self.step += 1

    def accuracy(self) -> dict[str, Any]:
        """What the guard says; the same on all ranks."""
        found: dict[str, Any] = self.optimizer.stats()["accuracy"]
        turn = -1.0 if found.get("turn") is None else found["turn"]
        rows = gathered([turn, found["cost"], *map(float, found["verdicts"].values())])
        assert all(row == rows[0] for row in rows), rows
        return found

    @property
    def late(self) -> bool:
        return bool(self.optimizer.stats()["late"])

    def check(self) -> None:
        self.optimizer.flush()
        assert equal_on_all_ranks(self.model.parameters()), "the replicas differ"
        assert_equal_models(self.model, self.reference, "gradients do not depend on parameters")


def case_calm_gradients_may_be_late() -> None:
    job = Job(accuracy_budget=BUDGET)
    job.train(60, turning=False)
    found = job.accuracy()
    assert (found["verdict"], found["verdicts"]) == ("kept", {"kept": 1}), found
    assert found["turn"] < 1e-6, found
    assert found["steps"] >= 20, found
    assert job.late
    job.check()


def case_formats_whose_errors_batches_do_not_hide_are_left_out() -> None:
    for noise, expected in ((0.0, ["int4"]), (1.0, [])):
        job = Job("least_stale", noise, accuracy="fast", max_delay=0)
        job.train(WINDOW + 20, turning=False)
        said = job.optimizer.stats()["accuracy"]["rounding"]
        everyone = stock.allgather_object(said, name=f"rounding.{noise}")
        planned = [one for one in everyone if one["added_noise"]]
        assert len(planned) == 1, everyone  # one rank plans for all
        assert planned[0]["vetoed"] == expected, planned
        assert planned[0]["added_noise"]["int8"] < 0.1 < planned[0]["added_noise"]["int4"], planned


def case_gradients_that_turn_stay_synchronous() -> None:
    job = Job(accuracy_budget=BUDGET)
    job.train(60, turning=True)
    found = job.accuracy()
    assert (found["verdict"], found["cost"]) == ("refused", 0.0), found
    assert abs(found["turn"] - 4.0) < 0.01, found
    assert found["asked_cost"] > BUDGET, found
    assert not job.late
    assert job.optimizer.plan.policy == "least_stale"
    job.check()


def case_noise_of_batches_is_no_turn() -> None:
    """Averages of two ranks change by four times the gradient's square, and do not turn."""
    job = Job(accuracy_budget=BUDGET, noise=2.0)
    job.train(60, turning=False)
    found = job.accuracy()
    assert found["turn"] < 0.2, found
    assert job.late
    job.optimizer.flush()
    assert equal_on_all_ranks(job.model.parameters())


def case_once_gradients_turn_updates_come_in_time_again() -> None:
    job = Job(accuracy_budget=BUDGET)
    job.train(60, turning=False)
    assert job.late
    job.train(3 * WINDOW, turning=True)
    assert not job.late
    assert job.accuracy()["verdicts"] == {"kept": 1, "refused": 1}
    assert job.optimizer.stats()["replans"]["accuracy"] == 1
    job.check()


def case_once_gradients_calm_down_updates_may_be_late() -> None:
    job = Job(accuracy_budget=BUDGET)
    job.train(60, turning=True)
    assert not job.late
    job.train(3 * WINDOW, turning=False)
    assert job.late
    assert job.accuracy()["verdicts"] == {"refused": 1, "kept": 1}
    job.check()


def case_without_a_warm_up_the_first_window_decides() -> None:
    job = Job(accuracy_budget=BUDGET, warmup_steps=0)
    job.train(10, turning=False)
    assert not job.late
    assert job.accuracy()["turn"] is None
    job.train(WINDOW + 5, turning=False)
    assert job.late
    assert job.accuracy()["turn"] is not None
    job.check()


def case_without_a_budget_nobody_looks() -> None:
    job = Job()
    job.train(60, turning=True)
    assert job.optimizer.stats()["accuracy"] is None
    assert job.late
    job.check()


def case_auto_has_a_budget() -> None:
    job = Job("auto", trial_steps=2, trial_rounds=1)
    job.train(80, turning=True)
    found = job.accuracy()
    assert found["budget"] == BUDGET, found
    assert found["cost"] <= BUDGET, found
    assert not job.late or found["asked_cost"] <= BUDGET, found
    job.check()


def case_auto_that_keeps_stock_says_that_nothing_is_late() -> None:
    job = Job("auto", trial_steps=2, trial_rounds=1, min_gain=1.0)
    job.train(80, turning=False)
    stats = job.optimizer.stats()
    assert (stats["phase"], stats["running"], stats["plan"]) == ("settled", "stock", None), stats
    assert not job.late
    job.check()


def case_auto_tries_late_updates_once_the_learning_rate_is_low() -> None:
    job = Job("auto", trial_steps=2, trial_rounds=1, drift_steps=5, **LEFT_TO_AUTO)

    def tried() -> bool:
        stats = job.optimizer.stats()
        assert stats["phase"] == "settled", stats
        late = "least_stale (late)" in stats["trials_us"]
        # Once it may be late its gradients are watched.
        assert late == (stats["accuracy"] is not None), stats
        assert late or not stats["late"], stats
        replans = [float(late), float(stats["replans"].get("learning rate", 0))]
        assert all(row == replans for row in gathered(replans))
        return late

    job.train(40, turning=False)
    assert not tried()
    job.set_rate(0.4e-3)
    job.train(100, turning=False)
    assert tried()
    assert job.accuracy()["verdicts"]["kept"] >= 1
    job.set_rate(1e-3)
    job.train(60, turning=False)
    assert not tried()
    job.set_rate(0.1e-3)
    job.train(100, turning=False)
    assert not tried(), "an up and down is no end of training"
    assert job.optimizer.stats()["replans"]["learning rate"] == 2
    job.check()


def tries_at_lower_rates(*, turning: bool) -> tuple[str, list[int]]:
    """The first verdict on late updates that cannot gain enough; and how often they were tried when
    the rate had fallen to 0.7, 0.6, 0.4 and 0.1 of its highest."""
    options = {"min_gain": 1.0, "drift_steps": 5, **LEFT_TO_AUTO}
    job = Job("auto", trial_steps=2, trial_rounds=1, **options)
    job.train(40, turning=turning)
    tries, verdict = [], ""
    for rate in (0.7e-3, 0.6e-3, 0.4e-3, 0.1e-3):
        job.set_rate(rate)
        job.train(70, turning=turning)
        stats = job.optimizer.stats()
        assert (stats["phase"], stats["running"]) == ("settled", "stock"), stats
        tries.append(stats["replans"]["learning rate"])
        verdict = verdict or job.accuracy()["verdict"]
    assert not job.late
    job.check()
    return verdict, tries


def case_auto_does_not_try_late_updates_again_where_they_gained_nothing() -> None:
    assert tries_at_lower_rates(turning=False) == ("kept", [1, 1, 1, 1])


def case_auto_tries_late_updates_once_more_where_they_were_refused() -> None:
    """Where a machine is so busy that nothing is late even over slow links, nothing is refused."""
    verdict, tries = tries_at_lower_rates(turning=True)
    assert tries == ([1, 1, 1, 1] if verdict == "kept" else [1, 1, 2, 2]), (verdict, tries)


def case_a_rate_that_falls_as_parameters_change_has_all_measured_anew() -> None:
    job = Job("auto", trial_steps=2, trial_rounds=1, drift_steps=5, **LEFT_TO_AUTO)
    frozen = [model.parts[1] for model in (job.model, job.reference)]
    for part in frozen:
        part.requires_grad_(False)
    job.train(40, turning=False)
    job.set_rate(0.4e-3)
    for part in frozen:
        part.requires_grad_(True)
    job.train(150, turning=False)
    stats = job.optimizer.stats()
    assert stats["phase"] == "settled", stats
    assert {"stock", "least_stale (late)"} <= {*stats["trials_us"]}, stats
    assert stats["replans"]["learning rate"] == 1, stats
    job.check()


def case_auto_stays_exact_where_late_updates_are_forbidden() -> None:
    in_time = {**LEFT_TO_AUTO, "max_delay": 0}
    for config in (in_time, {**LEFT_TO_AUTO, "accuracy_budget": 0.0}, UNASKED):
        job = Job("auto", trial_steps=2, trial_rounds=1, **config)
        job.train(40, turning=False)
        job.set_rate(0.1e-3)
        job.train(60, turning=False)
        stats = job.optimizer.stats()
        assert (stats["accuracy"], stats["late"]) == (None, False), stats
        assert "learning rate" not in stats["replans"], stats
        job.check()


def case_auto_stays_exact_with_a_loss_scaler() -> None:
    """Whoever unscales gradients, to clip them, would need the scale of another step."""
    job = Job("auto", trial_steps=2, trial_rounds=1, drift_steps=5, **LEFT_TO_AUTO)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1000)
    for step in range(100):
        if step == 40:
            job.set_rate(0.1e-3)
        job.optimizer.zero_grad()
        scaler.scale(job.model(job.base)).backward()
        job.optimizer.synchronize()
        scaler.unscale_(job.optimizer)
        with job.optimizer.skip_synchronize():
            scaler.step(job.optimizer)
        scaler.update()
        job.plain.zero_grad()
        job.reference(job.base).backward()
        job.plain.step()
    stats = job.optimizer.stats()
    assert (stats["phase"], stats["accuracy"], stats["late"]) == ("settled", None, False), stats
    assert not {"learning rate", "asked by a rank"} & {*stats["replans"]}, stats
    job.check()


def case_exact_training_is_not_watched() -> None:
    job = Job("least_stale", max_delay=0, accuracy_budget=BUDGET)
    job.train(20, turning=True)
    assert job.optimizer.stats()["accuracy"] is None
    job.check()


def over_slow_links(*args: Any) -> Profile:
    """In place of :meth:`Profiler.profile`."""
    return with_margin(_MEASURED(*args), 1.0 / SLOWER)


if __name__ == "__main__":
    with mock.patch.object(Profiler, "profile", over_slow_links):
        main(globals())
