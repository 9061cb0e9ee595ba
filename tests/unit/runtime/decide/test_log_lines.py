"""The lines that people read."""

import pytest

from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.policies import get
from deft_horovod.policies.base import Request
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.runtime.decide.log_lines import lateness_text, verdict

MODEL = tuple(Parameter(f"p{i}", 250_000, "float32", "float32", "cpu") for i in range(3))
PROFILE = Profile.assumed(3).model_copy(
    update={
        "forward_us": 60_000.0,
        "backward_us": 130_000.0,
        "optimizer_us": 10_000.0,
        "step_us": 300_000.0,
        "links": Profile.link_of(LinkCost(alpha_us=0.0, beta_us_per_byte=0.05)),
    }
)
PLAN = get("bucket").plan(Request(MODEL, PROFILE, Config()))


def late(delay, merged=1):
    """Half of the steps' generations of the plan, later."""
    generations = tuple(
        g.model_copy(update={"last_step": merged - 1, "apply_step": merged - 1 + delay})
        for g in PLAN.generations
    )
    return PLAN.model_copy(
        update={"generations": generations, "period": merged, "buffers": 2, "policy": "late"}
    )


def test_one_line_says_what_was_gained():
    text = verdict(PROFILE, PLAN, 250_000.0, {})
    assert "\n" not in text
    for part in (
        "bucket:",
        "compute 200.0 ms",
        "communication 150.0 ms",
        "exposed 100.0 -> 50.0 ms",
        "step 300.0 -> 250.0 ms (1.20x of stock)",
        "every update in time",
    ):
        assert part in text
    assert "accuracy" not in text


def test_whoever_gets_rounded_gradients_is_told_how_to_get_exact_ones():
    rounded = tuple(b.model_copy(update={"format": "int8"}) for b in PLAN.buckets)
    plan = PLAN.model_copy(update={"buckets": rounded})
    assert "accuracy='exact' keeps all bits" in verdict(PROFILE, plan, 250_000.0, {})


def test_trials_are_the_measure_where_there_were_some():
    trials = {("stock", False): 260_000.0, ("bucket", False): 208_000.0}
    text = verdict(PROFILE, PLAN, 208_000.0, trials)
    assert "step 260.0 -> 208.0 ms (1.25x of stock)" in text
    assert "tried, in ms: stock 260.0 bucket 208.0" in text


def test_stock_that_is_kept_says_so():
    text = verdict(PROFILE, None, 300_000.0, {("stock", False): 300_000.0})
    assert "stock Horovod is kept" in text
    assert "communication" not in text


@pytest.mark.parametrize(
    ("delay", "merged", "said"),
    [
        (1, 1, "100 % of the bytes 1 step late"),
        (1, 2, "100 % of the bytes 1 step late, 2 steps at once"),
    ],
)
def test_how_late_updates_come_is_said(delay, merged, said):
    assert said in verdict(PROFILE, late(delay, merged), 200_000.0, {})


@pytest.mark.parametrize(
    ("delay", "merged", "said"),
    [
        (1, 1, "may come up to 1 step late; they"),
        (2, 1, "may come up to 2 steps late; they"),
        (0, 4, "may carry up to 4 steps; they"),
        (1, 4, "may come up to 1 step late and carry up to 4 steps; they"),
    ],
)
def test_the_warning_says_how_late(delay, merged, said):
    assert said + " are not corrected" in lateness_text(late(delay, merged), "none")
    assert said + " are predicted (local)" in lateness_text(late(delay, merged), "local")
