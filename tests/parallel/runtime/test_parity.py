"""Delay 0 is Horovod: 24 steps with ours and with Horovod's optimizer, from the same start."""

from __future__ import annotations

import pytest

from deft_horovod import policies
from tests.parallel.parity_jobs import LIMIT_S, RANKS, check_equal, values
from tests.parallel.scripts.parity_cases import PROFILED_STEPS, STEPS, Case, cases_at

pytestmark = pytest.mark.timeout(LIMIT_S)

_CASES = [pytest.param(np, case, id=f"{np}-{case.name}") for np in RANKS for case in cases_at(np)]


@pytest.mark.parametrize(("np", "case"), _CASES)
def test_equals_horovod(np: int, case: Case) -> None:
    check_equal(np, case, values(np, case.name))


@pytest.mark.parametrize(
    ("np", "case"), [p for p in _CASES if p.values[1].policy not in ("stock", "auto")]
)
def test_plans_have_several_messages(np: int, case: Case) -> None:
    """Otherwise nothing was fused, cut or ordered, and the comparison would show little."""
    for rank, seen in enumerate(values(np, case.name)):
        if (case.ranks == "first" and rank != 0) or (case.ranks == "pair" and rank == 1):
            assert seen["stats"] == {"policy": "none"}
            continue
        stats = seen["stats"]
        assert stats["steps"] == STEPS
        # priority plans anew after its first steps, and counts from there
        steps = STEPS - 6 if case.policy == "priority" else STEPS
        # Others begin with a profile, under stock Horovod.
        steps -= PROFILED_STEPS if policies.get(case.policy).measures else 0
        # All of it fits into one small message, or is merged into one.
        few = case.model == "tied" or case.policy == "mgwfbp"
        assert stats["messages"] >= (1 if few else 2) * steps
        if case.policy == "wfbp":
            parameters = {"mlp": 6, "double": 6, "mixed": 8, "cnn": 10, "tied": 3}
            assert stats["messages"] == parameters[case.model] * STEPS
        if case.policy == "priority" and case.model in ("mlp", "double"):
            pieces = stats["messages"] / steps
            assert pieces > (4 if case.compression == "fp16" else 6), "nothing was cut"
            assert stats["plans"] == 2, "priority plans again when it has measured the link"


@pytest.mark.parametrize(("np", "case"), [p for p in _CASES if p.values[1].policy == "auto"])
def test_auto_has_made_its_choice_before_the_end(np: int, case: Case) -> None:
    """Otherwise the policies that it chooses from were not all compared."""
    for seen in values(np, case.name):
        assert seen["stats"].get("phase", "settled") == "settled"
