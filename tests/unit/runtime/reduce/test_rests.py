"""Rests wander from plan to plan, whatever their buckets, and lose nothing."""

import torch

from deft_horovod.runtime.reduce.encoded import encodings_of
from deft_horovod.runtime.reduce.rests import Rests
from tests.unit.plan.test_formats import plan_of

SIZES, EXACT = [700, 30, 501], [False, True, False]


def filled(plan, rests, seed=0):
    encodings = encodings_of(plan)
    rests.begin(plan, encodings)
    draw = torch.Generator().manual_seed(seed)
    for _, _, rest in rests._pieces():
        rest.copy_(torch.randn(len(rest), generator=draw))
    return encodings


def equal(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def test_the_next_plan_goes_on_with_them():
    rests = Rests()
    filled(plan_of(SIZES, EXACT, [0.3, 0.5, 0.8], "int8"), rests)
    before = rests.to_state()
    assert {name: len(rest) for name, rest in before.items()} == {"p0": 700, "p2": 501}
    rests.end()
    assert equal(rests.to_state(), before)
    other = plan_of(SIZES, EXACT, [0.6], "int4")
    encodings = encodings_of(other)
    rests.begin(other, encodings)
    assert equal(rests.to_state(), before)
    held = sum(encoding.rest.square().sum() for encoding in encodings.values())
    assert torch.isclose(held, sum(rest.square().sum() for rest in before.values()))


def test_an_exact_plan_leaves_them_for_later():
    rests = Rests()
    filled(plan_of(SIZES, EXACT, [0.5], "int8"), rests)
    before = rests.to_state()
    rests.end()
    exact = plan_of(SIZES, EXACT, [0.5], "f32")
    rests.begin(exact, encodings_of(exact))
    rests.end()
    assert equal(rests.to_state(), before)


def test_a_checkpoint_gives_them_back():
    rests, other = Rests(), Rests()
    plan = plan_of(SIZES, EXACT, [0.3], "int8")
    encodings = filled(plan, rests)
    other.restore(rests.to_state())
    again = encodings_of(plan)
    other.begin(plan, again)
    assert equal(other.to_state(), rests.to_state())
    for bucket, encoding in encodings.items():
        assert torch.equal(again[bucket].rest, encoding.rest)


def test_nothing_is_left_once_cleared():
    rests = Rests()
    encodings = filled(plan_of(SIZES, EXACT, [0.3], "int8"), rests)
    rests.clear()
    assert rests.to_state() == {}
    assert not any(encoding.rest.any() for encoding in encodings.values())
