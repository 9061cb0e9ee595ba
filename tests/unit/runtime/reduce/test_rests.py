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
    return rests.begin(plan, encodings_of(plan, rank, RANKS), FACTOR)


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


@pytest.mark.parametrize("rank", range(RANKS))
def test_an_exact_plan_takes_them_along(rank):
    rests = Rests()
    filled(plan_of(SIZES, EXACT, [0.5], "int8"), rests, rank)
    before = total(rests)
    rests.end()
    encodings = begun(plan_of(SIZES, [True] * 3, [0.5], "f32"), rests, rank)
    assert sorted(encodings) == [0, 1]
    assert all(encoding.always_whole for encoding in encodings.values())
    assert sum(int(encoding.rest.count_nonzero()) for encoding in encodings.values()) > 0
    assert equal(total(rests), before)
    rests.end()
    assert equal(total(rests), before), "no message has left"
    begun(plan_of(SIZES, EXACT, [], "int8"), rests, rank)
    assert equal(total(rests), before)


def test_an_exact_plan_needs_nothing_where_nothing_is_left():
    rests = Rests()
    encodings = filled(plan_of(SIZES, EXACT, [0.9925], "int8"), rests)
    for rest in (encodings[0].rest, encodings[0].sum_rest):
        rest.zero_()
    rests.end()
    again = begun(plan_of(SIZES, EXACT, [0.9925], "f32"), rests)
    assert list(again) == [1], "the bucket of p2"
    other = Rests()
    begun(plan_of(SIZES, EXACT, [0.9925], "int8"), other)
    other.end()
    assert begun(plan_of(SIZES, EXACT, [0.9925], "f32"), other) == {}


def test_the_next_messages_travel_whole_once_that_is_asked_for():
    rests, restored = Rests(), Rests()
    plan = plan_of(SIZES, EXACT, [0.3], "int8")
    encodings = begun(plan, rests)
    assert rests.to_state()["whole_next"] == []
    rests.send_whole()
    assert all(encoding.whole_next for encoding in encodings.values())
    state = rests.to_state()
    assert state["whole_next"] == ["p0", "p1", "p2"]
    assert rests.to_state(in_step=True)["whole_next"] == []

    restored.restore(state)
    assert restored.to_state() == state
    assert all(encoding.whole_next for encoding in begun(plan, restored).values())

    encodings[1].whole_next = False  # as if the second message had left
    rests.end()
    again = begun(plan_of(SIZES, EXACT, [0.1, 0.3], "int4"), rests)
    assert [again[bucket].whole_next for bucket in sorted(again)] == [True, True, True]
    rests.end()
    assert not any(encoding.always_whole for encoding in again.values())


def test_a_plan_in_full_precision_is_not_asked_for_more():
    rests = Rests()
    filled(plan_of(SIZES, EXACT, [0.3], "int8"), rests)
    rests.end()
    encodings = begun(plan_of(SIZES, EXACT, [0.3], "f32"), rests)
    rests.send_whole()
    assert not any(encoding.whole_next for encoding in encodings.values())


def test_what_was_asked_for_is_withdrawn():
    rests = Rests()
    encodings = filled(plan_of(SIZES, EXACT, [0.3], "int8"), rests)
    before = total(rests)
    rests.send_whole()
    rests.withdraw()
    assert not any(encoding.whole_next for encoding in encodings.values())
    assert equal(total(rests), before)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_without_a_plan_they_are_added_to_gradients(memory_format):
    parameter = torch.zeros(2, 3, 2, 2).to(memory_format=memory_format)
    inside = torch.arange(24.0)  # in the order of memory
    rests = Rests()
    rests.restore({"values": {"p": inside[:20]}, "sums": {"p": torch.ones(24)}})
    gradient = torch.ones(2, 3, 2, 2)
    gradient[0, 0, 0, 0] = torch.inf
    rests.add_to(gradient, "p", parameter, FACTOR)
    assert int((gradient == 1.0).sum()) == 23
    gradient[0, 0, 0, 0] = 1.0
    for extra in (1, 0):
        before = gradient.clone()
        rests.add_to(gradient, "p", parameter, FACTOR)
        rests.add_to(gradient, "other", parameter, FACTOR)
        left = torch.cat([inside[:20], torch.zeros(4)]) + 1.0 / FACTOR
        expected = left.as_strided(parameter.size(), parameter.stride())
        assert torch.equal(gradient - before, extra * expected)
    assert rests.to_state() == {"values": {}, "sums": {}, "whole_next": []}


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
    rests.send_whole()
    rests.clear()
    assert rests.dropped == 2, "of the third nothing was rounded"
    rests.clear()
    assert rests.dropped == 2
    assert rests.to_state() == {"values": {}, "sums": {}, "whole_next": []}
    for encoding in encodings.values():
        assert not encoding.rest.any()
        assert not encoding.sum_rest.any()
