import pytest

from deft_horovod.solver.messages.blocks import block_up
from deft_horovod.solver.problem import (
    MARGIN,
    WIDE_MARGIN,
    Choice,
    Item,
    Limits,
    margin_of,
    problem_of,
)
from tests.unit.support.models import request
from tests.unit.support.problems import example


@pytest.mark.parametrize(
    ("choice", "steps"),
    [
        (Choice(), 0.0),
        (Choice(gated=True), 0.0),
        (Choice(delay=1), 1.0),
        (Choice(merged=4, delay=1), 2.5),  # its gradients wait 3, 2, 1 and 0 steps, and then one
    ],
)
def test_staleness_is_the_mean_over_the_gradients(choice, steps):
    assert choice.staleness == steps


def test_generations_are_complete_from_the_end_step_on():
    assert list(Choice(merged=2, end_step=1).last_steps(4)) == [1, 3]
    assert list(Choice().last_steps(3)) == [0, 1, 2]


def test_load_counts_the_buckets_of_a_link():
    item = Item(0.0, None, 1.0, ((1.0, 10.0), (2.0, 20.0), (4.0, 40.0)))
    assert item.load_us((0, 1, 0), 0) == 5.0
    assert item.load_us((0, 1, 0), 1) == 20.0


def test_the_least_load_takes_the_fastest_link_and_merges_everything():
    assert example().least_load_us() == 90.0
    assert example(links=2, limits=Limits(0, 3)).least_load_us() == 15.0


def test_items_are_blocks_weighted_by_their_bytes_unless_told_otherwise():
    given = request("gpt2", 1.0)
    blocking = block_up(given.parameters, given.profile)
    problem = problem_of(blocking, given.profile, Limits(1, 2), (0,))
    assert len(problem.items) == len(blocking.blocks)
    assert problem.step_us == pytest.approx(given.profile.compute_us)
    for item, block in zip(problem.items, blocking.blocks, strict=True):
        assert item.weight == sum(blocking.bucket_bytes(bucket) for bucket in block.buckets)
        assert item.times_us[0][0] == given.profile.link.time_us(
            blocking.bucket_bytes(block.buckets[0])
        )
    weights = [float(i) for i in range(len(blocking.blocks))]
    weighted = problem_of(blocking, given.profile, Limits(1, 2), (0,), weights)
    assert [item.weight for item in weighted.items] == weights


@pytest.mark.parametrize(
    ("load", "max_merge", "margin"),
    [
        (0.96, 4, MARGIN),  # a wider one would be the only reason to merge
        (1.0, 4, WIDE_MARGIN),
        (1.0, 1, MARGIN),  # compute waits whatever the margin
        (3.8, 4, MARGIN),
    ],
)
def test_the_margin_is_wide_only_where_gradients_are_merged_anyway(load, max_merge, margin):
    profile = request("vgg19", load, max_delay=1, max_merge=max_merge).profile
    (link,) = profile.links
    wire_bytes = load * profile.compute_us / link.cost.beta_us_per_byte
    assert margin_of(profile, wire_bytes, Limits(1, max_merge)) == margin
