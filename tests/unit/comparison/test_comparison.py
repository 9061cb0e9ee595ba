"""A comparison: what follows from the steps that were measured."""

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.comparison import Arm, Comparison
from deft_horovod.errors import PlanError
from deft_horovod.profile import Profile

PROFILE = Profile.assumed(2)
times = st.lists(st.floats(1.0, 1e6), min_size=1, max_size=4)


@st.composite
def comparisons(draw):
    rounds = draw(st.integers(1, 4))
    arms = []
    for policy in ("stock", "bucket", "deft")[: draw(st.integers(1, 3))]:
        measured = [draw(times) for _ in range(rounds)]
        arms.append(Arm(policy=policy, late=policy == "deft", rounds_us=measured))
    chosen = draw(st.integers(0, len(arms) - 1))
    return Comparison(policy="auto", chosen=chosen, profile=PROFILE, arms=tuple(arms))


@given(comparisons())
def test_what_is_told_follows_from_the_steps(comparison):
    for arm in comparison.arms:
        steps = [us for one in arm.rounds_us for us in one]
        low_us, high_us = arm.spread_us
        assert min(steps) - 1e-6 <= low_us <= high_us <= max(steps) + 1e-6
        assert arm.step_us == median(steps)
        assert comparison.speedup(arm) * arm.step_us == pytest.approx(comparison.baseline.step_us)
        assert len(comparison.speedups(arm)) == len(arm.rounds_us)
        assert 0.0 <= comparison.exposed_share(arm) <= 1.0
        assert comparison.exposed_us(arm) <= arm.step_us
    assert comparison.speedup(comparison.baseline) == 1.0
    assert comparison.ours in comparison.arms


@given(comparisons())
def test_it_is_the_same_from_its_text(comparison):
    assert Comparison.from_json(comparison.to_json()) == comparison


def test_the_late_one_is_told_apart():
    arm = Arm(policy="least_stale", rounds_us=((1.0,),))
    assert arm.name == "least_stale"
    assert arm.model_copy(update={"late": True}).name == "least_stale (late)"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chosen": 2}, "one of them the chosen one"),
        ({"arms": (Arm(policy="deft", rounds_us=((1.0,),)),)}, "has to be the first"),
        (
            {
                "arms": (
                    Arm(policy="stock", rounds_us=((1.0,),)),
                    Arm(policy="deft", rounds_us=((1.0,), (2.0,))),
                )
            },
            "all have to take part in all rounds",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(changes, message):
    fields = {
        "policy": "deft",
        "chosen": 0,
        "profile": PROFILE,
        "arms": (Arm(policy="stock", rounds_us=((1.0,),)),),
    }
    with pytest.raises(PlanError, match=message):
        Comparison(**{**fields, **changes})
