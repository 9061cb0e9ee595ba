import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.policies.published.tuning import (
    fastest,
    fastest_place,
    piece_sizes_bytes,
    sizes_bytes,
)
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.models import request as model

NAMES = ("wfbp", "mgwfbp", "dear", "p3", "bytescheduler", "priority", "deft")


@given(st.integers(1, 10**12))
def test_sizes_halve_from_the_whole_model_down(total_bytes):
    sizes = sizes_bytes(total_bytes)
    assert sizes[0] == max(4096, total_bytes)
    assert 1 <= len(sizes) <= 7
    assert sizes == sorted(set(sizes), reverse=True)
    assert all(size >= 4096 for size in sizes)


def test_the_fastest_is_the_first_that_no_other_beats():
    request = model("vgg19", 1.0)
    plans = [policies.get(name).plan(request) for name in ("wfbp", "mgwfbp", "dear", "dear")]
    chosen = fastest(plans, request.profile)
    assert simulate(chosen, request.profile).step_us == min(
        simulate(plan, request.profile).step_us for plan in plans
    )
    assert fastest([plans[2], plans[3]], request.profile) is plans[2]


@pytest.mark.parametrize("coverage", [0.2, 1.0, 30.0])  # computing decides, nothing, the link
def test_what_is_not_simulated_could_not_have_won(coverage):
    request = model("vgg19", coverage)
    plans = [policies.get(name).plan(request) for name in NAMES]
    for first in range(len(plans)):
        order = [*plans[first:], *plans[:first]]
        steps_us = [simulate(plan, request.profile).step_us for plan in order]
        place, plan = fastest_place(iter(order), request.profile)
        assert place == steps_us.index(min(steps_us))
        assert plan is order[place]


def test_of_no_plan_none_is_the_fastest():
    with pytest.raises(ValueError, match="no plan"):
        fastest([], model("vgg19", 1.0).profile)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=50))
def test_sizes_of_pieces_are_those_that_cut_and_one_that_does_not(gradients_bytes):
    sizes, largest = piece_sizes_bytes(gradients_bytes), max(gradients_bytes)
    cutting = [size for size in sizes_bytes(sum(gradients_bytes)) if size < largest]
    assert sizes == [largest, *cutting]
