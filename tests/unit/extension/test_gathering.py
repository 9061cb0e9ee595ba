"""Gradients packed bucket by bucket come back as those packed one by one."""

import itertools
import random

import horovod.torch as stock
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod.plan import Arena, Generation, Link, Plan, Task
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce.planned import open_link
from tests.unit.support.random_plans import buffers_for, slots_and_buckets

_HEADER = 4  # elements in 16 bytes
_NUMBERS = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


def plan_of(pick, merged, delay):
    """Any cut of any slots into buckets; all of them late alike."""
    elements, slots, buckets = slots_and_buckets(pick)
    last = merged - 1
    links = (Link(name="horovod"),)
    tasks = tuple(
        Task(generation=b, op="all_reduce", link=0, step=last, stage="backward")
        for b in range(len(buckets))
    )
    fields = {
        "policy": "random",
        "period": merged,
        "arenas": (Arena(dtype="float32", wire="float32", device="cpu", elements=elements),),
        "slots": tuple(slots),
        "buckets": tuple(buckets),
        "generations": tuple(
            Generation(bucket=b, first_step=0, last_step=last, apply_step=last + delay)
            for b in range(len(buckets))
        ),
    }
    return Plan(**fields, buffers=buffers_for(fields, links, tasks), links=links, tasks=tasks)


class Rank:
    """One way of packing, at work on parameters of its own."""

    def __init__(self, plan, together):
        sizes = [slot.end - slot.begin - _HEADER for slot in plan.slots]
        self.tensors = [torch.ones(size, requires_grad=True) for size in sizes]
        reduction = Reduction(
            stock.Sum, stock.Compression.none, 1.0, False, stock.global_process_set
        )
        self.session = native.Session(
            native.Plan(plan.model_dump()),
            self.tensors,
            [open_link(reduction)],
            f"unit.gathering.{next(_NUMBERS)}",
            0,
            1,
            together,
        )
        names = [slot.name for slot in plan.slots]
        self.collector = native.Collector(self.tensors, names, 1)
        self.collector.set_sink(self.session, range(len(names)))

    def step(self, factors):
        """Gradients arrive in this order; those without a factor are missing."""
        if factors:
            sum((self.tensors[i] * factor).sum() for i, factor in factors).backward()
        self.session.close_step()
        for tensor in self.tensors:
            tensor.grad = None
        dues = self.session.due()
        assert self.session.wait(dues, 20.0) is None
        asked = self.session.install(dues)
        seen = [None if t.grad is None else t.grad.clone() for t in self.tensors]
        self.session.release(dues)
        self.session.end_step()
        self.collector.reset()
        for tensor in self.tensors:
            tensor.grad = None
        return seen, asked


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([(1, 0), (1, 1), (2, 0), (3, 1)]))
def test_together_is_one_by_one(pick, timing):
    plan = plan_of(pick, *timing)
    ranks = [Rank(plan, together) for together in (False, True)]
    for step in range(6):
        order = pick.sample(range(len(plan.slots)), len(plan.slots))
        factors = [(i, float(pick.randint(1, 9))) for i in order if pick.random() < 0.8]
        if step == 3:
            for rank in ranks:
                rank.session.request_replan()
        (one, asked), (other, asked_too) = (rank.step(factors) for rank in ranks)
        assert asked == asked_too
        for mine, theirs in zip(one, other, strict=True):
            assert (mine is None) == (theirs is None)
            assert mine is None or torch.equal(mine, theirs)


def test_sums_of_several_steps_are_those_of_the_gradients():
    plan = plan_of(random.Random(1), 2, 0)
    rank = Rank(plan, together=True)
    everyone = range(len(plan.slots))
    seen, _ = rank.step([(i, 2.0) for i in everyone])
    assert all(gradient is None for gradient in seen)
    seen, _ = rank.step([(i, 5.0) for i in everyone])
    assert all(gradient.unique().tolist() in ([7.0], []) for gradient in seen)
