"""Jobs on networks: what the simulator is asked, and what holds for every policy."""

from types import SimpleNamespace
from typing import Any

import pytest

from deft_horovod import policies
from deft_horovod.profile import LinkCost

EXACT_RIVALS = ("stock", "wfbp", "ddp", "mgwfbp", "p3", "bytescheduler", "dear")


def job(reproduction: SimpleNamespace, name: str = "resnet50") -> Any:
    workload = reproduction.model_shapes.SHAPES[name]()
    return reproduction.reproduction.Job(name, name, workload, 80_000.0, 120_000.0)


def network(reproduction: SimpleNamespace, ccr: float, alpha_us: float, **more: Any) -> Any:
    size = job(reproduction).workload.size_bytes
    cost = LinkCost(alpha_us=alpha_us, beta_us_per_byte=ccr * 200_000.0 / size)
    return reproduction.reproduction.Network("n", "n", 16, cost, **more)


def test_a_job_is_profiled_as_it_computes(reproduction: SimpleNamespace) -> None:
    asked = reproduction.reproduction.request(
        job(reproduction), network(reproduction, 1.0, 100.0), {"tune": False}
    )
    assert sum(one.bytes for one in asked.parameters) == job(reproduction).workload.size_bytes
    assert asked.profile.compute_us == pytest.approx(200_000.0)
    assert not asked.config.tune
    use, ready = asked.profile.first_use_us, asked.profile.ready_us
    assert use[0] == 0.0
    assert ready[0] == 120_000.0
    # What is used first is ready last, in proportion.
    for used_us, ready_us in zip(use, ready, strict=True):
        assert used_us is not None
        assert used_us / 80_000.0 + ready_us / 120_000.0 == pytest.approx(1.0)


def test_links_are_extrapolated_by_the_ring(reproduction: SimpleNamespace) -> None:
    there = reproduction.reproduction.cost_there
    whole = network(reproduction, 1.0, 1000.0)
    assert there(job(reproduction), whole) == whole.cost
    fewer = network(reproduction, 1.0, 1000.0, measured_ranks=8, round_us=10.0)
    found = there(job(reproduction), fewer)
    assert found.alpha_us == pytest.approx(1000.0 + 2 * 8 * 10.0)
    longer = (15 / 16) / (7 / 8)
    assert found.beta_us_per_byte == pytest.approx(fewer.cost.beta_us_per_byte * longer)
    half = fewer.with_start_up(0.5)
    assert (half.cost.alpha_us, half.round_us) == (500.0, 5.0)
    assert half.cost.beta_us_per_byte == fewer.cost.beta_us_per_byte


def test_arms_are_those_whose_policy_there_is(reproduction: SimpleNamespace) -> None:
    arms, known = reproduction.reproduction.ARMS, reproduction.reproduction.known_arms()
    registered = set(policies.registry())
    no_paper = {"auto", "fewest_bytes"}  # theirs send float32
    assert {arm.policy for arm in known.values()} == registered - no_paper
    assert set(arms) - set(known) == {n for n, a in arms.items() if a.policy not in registered}
    assert {arm.kind for arm in arms.values()} == set(reproduction.reproduction.KINDS)


def test_wfbp_of_the_papers_is_not_fused(reproduction: SimpleNamespace) -> None:
    arms = {name: reproduction.reproduction.ARMS[name] for name in ("stock", "wfbp")}
    slow = network(reproduction, 0.01, 2000.0)
    found = reproduction.reproduction.cell(job(reproduction), slow, arms)
    # Backward takes 120 ms, but 161 start-ups alone take 322.
    assert found["arms"]["wfbp"]["step_ms"] >= 80 + 322
    assert found["arms"]["stock"]["step_ms"] < 220
    assert reproduction.reproduction.gain(found, "stock", "wfbp") > 1.8
    assert reproduction.reproduction.gain(found, "stock", "nobody") is None


@pytest.mark.parametrize("ccr", [1.0, 2.0])
def test_late_plans_are_ahead_where_communication_takes_as_long_as_computing(
    reproduction: SimpleNamespace, ccr: float
) -> None:
    module = reproduction.reproduction
    arms = {name: arm for name, arm in module.known_arms().items() if name != "covap"}
    found = module.cell(job(reproduction), network(reproduction, ccr, 200.0), arms)
    assert found["ccr"] == pytest.approx(ccr)
    steps = {name: arm["step_ms"] for name, arm in found["arms"].items()}
    for name, arm in arms.items():
        assert steps[name] >= 200.0 - 1e-3
        if arm.kind != module.EXACT:
            continue
        assert steps[name] >= found["exact_floor_ms"] - 0.5 or name == "dear_half", name
        assert steps["deft"] <= steps[name]
        assert steps["least_stale_late"] <= steps[name]
        assert found["arms"][name]["staleness_steps"] == 0.0
        assert found["arms"][name]["updates_per_step"] == 1.0
    # DeAR may be ahead by a few percent.
    assert all(steps["least_stale"] <= 1.04 * steps[name] for name in EXACT_RIVALS)
