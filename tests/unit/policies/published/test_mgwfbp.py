from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.policies.published.mgwfbp import merged
from deft_horovod.profile import LinkCost
from tests.unit.support.planning import requests

COST = LinkCost(alpha_us=10.0, beta_us_per_byte=1.0)


def groups_of(ready_us, sizes_bytes, kinds=None):
    return merged(ready_us, sizes_bytes, kinds or [0] * len(ready_us), COST)


def test_what_is_ready_before_the_message_could_start_goes_along():
    # The first one travels from 0 to 110; the second one could start at 110 only, and the third one
    # is ready at 30, before that. The fourth is ready when all have arrived: at 110 + 10 + 4.
    assert groups_of([0.0, 20.0, 30.0, 124.0], [100, 2, 2, 1]) == [[0], [1, 2], [3]]


def test_waiting_for_less_than_a_start_up_pays():
    # 9 us of waiting save a start-up of 10; 10 do not.
    assert groups_of([0.0, 9.0], [100, 1]) == [[0, 1]]
    assert groups_of([0.0, 10.0], [100, 1]) == [[0], [1]]


def test_times_are_computed_anew_after_each_merge():
    # 0 and 1 merged start at 9 (waiting 9 < 10), so 2 at 18 has to wait 9 again, and so on.
    assert groups_of([0.0, 9.0, 18.0, 27.0], [100] * 4) == [[0, 1, 2, 3]]


def test_nothing_is_merged_that_finds_the_link_free():
    assert groups_of([0.0, 50.0, 100.0], [20, 20, 20]) == [[0], [1], [2]]


def test_kinds_never_travel_together():
    assert groups_of([0.0, 1.0, 2.0], [9, 9, 9], ["a", "b", "b"]) == [[0], [1, 2]]


@given(st.lists(st.tuples(st.floats(0, 1e4), st.integers(0, 5000)), min_size=1, max_size=60))
def test_merging_never_ends_later_than_sending_one_by_one(layers):
    layers.sort()
    ready, sizes = [us for us, _ in layers], [size for _, size in layers]
    groups = groups_of(ready, sizes)
    assert [index for group in groups for index in group] == list(range(len(layers)))

    def ends_us(parts):
        now = 0.0
        for part in parts:
            now = max(now, ready[part[-1]]) + COST.time_us(sum(sizes[i] for i in part))
        return now

    assert ends_us(groups) <= ends_us([[i] for i in range(len(layers))]) + 1e-6


@given(requests(linked=True))
def test_every_message_leaves_in_backward(request):
    plan = policies.get("mgwfbp").plan(request)
    assert {(task.step, task.stage) for task in plan.tasks} == {(0, "backward")}
    assert not any(generation.gated for generation in plan.generations)
