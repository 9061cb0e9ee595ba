"""The arms of the benchmark: valid options, and warmed up until their plan stays."""

from types import SimpleNamespace

import pytest

from deft_horovod.base.policy_name import POLICIES
from deft_horovod.config import Config
from scripts.benchmarks import arms


@pytest.mark.parametrize("size_bytes", [1_000, 12_000_000, 600_000_000])
def test_options_are_valid_for_models_of_any_size(size_bytes: int) -> None:
    for kind in arms.KINDS.values():
        if kind.policy is not None:
            assert kind.policy in POLICIES
            Config.load({**arms.QUICK_PLAN, **kind.config(size_bytes)}, kind.policy, environ={})


def test_late_arms_fill_the_pipeline_and_measure_whole_periods() -> None:
    for name in ("deft", "least_stale"):
        kind = arms.KINDS[name]
        longest = arms.DELAYED["max_merge"]
        assert kind.ramp_steps >= longest
        assert kind.measured_steps % longest == 0


def test_what_cannot_run_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deft_horovod.policies.registry", lambda: {"bucket": None, "deft": None})
    names, missing = arms.available(["alone", "stock", "bucket", "priority", "deft_two"], False)
    assert names == ["alone", "stock", "bucket"]
    assert missing == {
        "priority": "there is no policy priority",
        "deft_two": "there is no second link",
    }
    assert arms.available(["deft_two"], True) == (["deft_two"], {})


class Optimizer:
    """Its plan is replaced after some steps."""

    def __init__(self, plans_at: dict[int, tuple[str, str]]) -> None:
        self.steps = 0
        self.flushed = 0
        self.now = ("profile", "")
        self.plans_at = plans_at

    def zero_grad(self) -> None: ...

    def step(self) -> None:
        self.steps += 1
        self.now = self.plans_at.get(self.steps, self.now)

    def flush(self) -> None:
        self.flushed += 1

    def stats(self) -> dict[str, object]:
        return {"phase": self.now[0], "plan": self.now[1]}


def arm_of(name: str, optimizer: Optimizer) -> object:
    loss = SimpleNamespace(backward=lambda: None)
    return arms.Arm(name, arms.KINDS[name], None, lambda: loss, optimizer)


def test_warms_up_until_the_plan_stays() -> None:
    optimizer = Optimizer({5: ("settled", "a"), 9: ("settled", "b")})
    arm_of("deft", optimizer).warm_up()
    assert (optimizer.steps, optimizer.flushed) == (6, 1)
    late = Optimizer({9: ("settled", "b")})
    arm_of("deft", late).warm_up()
    assert late.steps == 10


def test_gives_up_warming_what_never_settles() -> None:
    optimizer = Optimizer({})
    arm_of("deft", optimizer).warm_up()
    assert optimizer.steps == arms.MOST_WARM_UP_STEPS
