"""Rests wander from plan to plan, whatever their buckets, and lose nothing."""

import pytest
import torch

from deft_horovod.runtime.reduce.encoded import encodings_of
from deft_horovod.runtime.reduce.rests import Rests
from tests.unit.plan.test_formats import plan_of

SIZES, EXACT = [70_000, 30, 501], [False, True, False]
RANKS = 4
FACTOR = 1 / RANKS


def begun(plan, rests, rank=0):
    encodings = encodings_of(plan, rank, RANKS)
    rests.begin(plan, encodings, FACTOR)
    return encodings


def filled(plan, rests, rank=0):
    """As if messages had been rounded."""
    encodings = begun(plan, rests, rank)
    draw = torch.Generator().manual_seed(rank)
    for encoding in encodings.values():
        for rest in (encoding.rest, encoding.sum_rest):
            rest.copy_(torch.randint(-8, 8, rest.shape, generator=draw))
    return encodings


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def total(rests):
    """What all of it adds up to, by parameter, in the unit of gradients."""
    state = rests.to_state()
    sizes = {f"p{index}": size for index, size in enumerate(SIZES)}
    found = {name: torch.zeros(size) for name, size in sizes.items()}
    for name, values in state["values"].items():
        found[name][: len(values)] += values
    for name, sums in state["sums"].items():
        found[name][: len(sums)] += sums / FACTOR
    return found


@pytest.mark.parametrize("rank", range(RANKS))
def test_the_next_plan_goes_on_with_them(rank):
    rests = Rests()
    filled(plan_of(SIZES, EXACT, [0.3, 0.5, 0.8], "int8"), rests, rank)
    before = total(rests)
    assert before["p0"].any()
    assert before["p2"].any()
    assert not before["p1"].any(), "it travels as it is"
    assert rests.kept_bytes == 0
    rests.end()
    assert equal(total(rests), before)
    assert rests.kept_bytes >= 4 * (SIZES[0] + SIZES[2])
    encodings = begun(plan_of(SIZES, EXACT, [0.6], "int4"), rests, rank)
    assert equal(total(rests), before)
    assert rests.kept_bytes == 0, "they lie with the messages, and nowhere else"
    assert any(encoding.rest.any() for encoding in encodings.values())


def test_an_exact_plan_leaves_them_for_later():
    rests = Rests()
    filled(plan_of(SIZES, EXACT, [0.5], "int8"), rests)
    before = total(rests)
    rests.end()
    begun(plan_of(SIZES, EXACT, [0.5], "f32"), rests)
    rests.end()
    assert equal(total(rests), before)


@pytest.mark.parametrize("rank", range(RANKS))
def test_a_checkpoint_gives_them_back(rank):
    rests, other = Rests(), Rests()
    plan = plan_of(SIZES, EXACT, [0.3], "int8")
    encodings = filled(plan, rests, rank)
    other.restore(rests.to_state())
    again = begun(plan, other, rank)
    for bucket, encoding in encodings.items():
        assert torch.equal(again[bucket].rest, encoding.rest)
        assert torch.equal(again[bucket].sum_rest, encoding.sum_rest)


def test_nothing_is_left_once_cleared():
    rests = Rests()
    encodings = filled(plan_of(SIZES, EXACT, [0.3], "int8"), rests)
    rests.clear()
    assert rests.dropped == 2, "of the third nothing was rounded"
    rests.clear()
    assert rests.dropped == 2
    assert rests.to_state() == {"values": {}, "sums": {}}
    for encoding in encodings.values():
        assert not encoding.rest.any()
        assert not encoding.sum_rest.any()
