from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.errors import PlanError
from deft_horovod.plan import Generation
from deft_horovod.solver.assemble import (
    CREDIT_MESSAGES,
    Departure,
    Timing,
    apart,
    assemble,
    reordered,
)
from deft_horovod.solver.messages.blocks import block_up
from deft_horovod.solver.problem import Choice
from tests.unit.support.models import request


def blocking():
    given = request("vgg19", 0.5)
    return block_up(given.parameters, given.profile)


def test_a_choice_gives_the_spans_of_its_generations():
    assert Timing.of(Choice(merged=2, end_step=0, delay=1), 4).spans == ((-1, 0, 1), (1, 2, 1))
    assert Timing.of(Choice(gated=True), 2) == Timing(((0, 0, 0), (1, 1, 0)), True)


def test_a_plan_has_each_bucket_of_a_block_in_each_of_its_generations():
    blocks = blocking()
    one, others = blocks.blocks[0], blocks.blocks[1:]
    timings = [Timing(((-1, 0, 1),)), *[Timing(((0, 0, 0), (1, 1, 0)), gated=True)] * len(others)]
    departures = []
    for step in (0, 1):
        departures += [
            Departure(block, place, step, link=step)
            for block, entry in enumerate(blocks.blocks)
            for place in range(len(entry.buckets))
            if block or step == 0
        ]
    plan = assemble("mine", blocks, 2, timings, departures, ["horovod", "gloo"])
    assert (plan.policy, plan.period, plan.buffers) == ("mine", 2, 2)
    assert [link.name for link in plan.links] == ["horovod", "gloo"]
    assert {link.credit_messages for link in plan.links} == {CREDIT_MESSAGES}
    first = plan.generations[0]
    assert first == Generation(bucket=one.buckets[0], first_step=-1, last_step=0, apply_step=1)
    assert plan.generations[-1] == Generation(
        bucket=others[-1].buckets[-1], first_step=1, last_step=1, apply_step=1, gated=True
    )
    assert [(task.step, task.link) for task in plan.tasks] == [(d.step, d.link) for d in departures]


def test_a_window_is_not_before_that_of_what_leaves_before_on_the_link():
    blocks = blocking()
    count = len(blocks.blocks)
    timings = [Timing(((0, 0, 1), (1, 1, 1)))] * count
    places = [(b, p) for b, entry in enumerate(blocks.blocks) for p in range(len(entry.buckets))]
    late = [Departure(b, p, 1, 0) for b, p in places]
    early = [Departure(b, p, 0, 1) for b, p in places]
    plan = assemble("mine", blocks, 2, timings, [*late, *early], ["a", "b"])
    assert {(task.link, task.step) for task in plan.tasks} == {(0, 1), (1, 0)}
    mixed = [*early[:1], *late[:1], *early[1:], *late[1:]]
    on_one = [Departure(d.block, d.bucket, d.step, 0) for d in mixed]
    plan = assemble("mine", blocks, 2, timings, on_one)
    assert [task.step for task in plan.tasks] == [0] + [1] * (len(plan.tasks) - 1)
    assert {task.stage for task in plan.tasks} == {"backward"}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_a_boundary_has_one_generation_of_a_bucket(delays):
    period = len(delays)
    spans = [(step, step, delay) for step, delay in enumerate(delays)]
    found = apart(spans, period)
    assert [span[:2] for span in found] == [span[:2] for span in spans]
    applied = [last + delay for _, last, delay in found]
    assert len({step % period for step in applied}) == period
    assert applied == sorted(applied)
    assert all(before <= span[2] <= max(delays) for before, span in zip(delays, found, strict=True))


def test_what_is_in_time_waits_behind_what_is_late():
    assert apart([(0, 0, 0), (1, 1, 1), (2, 2, 1), (3, 3, 1)], 4) == tuple(
        (step, step, 1) for step in range(4)
    )
    alone = ((0, 0, 0), (1, 2, 1))
    assert apart(alone, 4) == alone


def made_or_refused(make):
    try:
        return make()
    except PlanError as error:
        return str(error)


@given(st.randoms(use_true_random=False), st.integers(1, 40))
def test_another_order_is_the_plan_that_is_made_in_it(pick, swaps):
    blocks = blocking()
    spans = {True: ((0, 0, 0), (1, 1, 0)), False: ((0, 0, 1), (1, 1, 1))}
    timings = [Timing(spans[pick.random() < 0.5]) for _ in blocks.blocks]
    departures = [
        Departure(block, place, step, link=0)
        for step in (0, 1)
        for block, entry in enumerate(blocks.blocks)
        for place in range(len(entry.buckets))
    ]
    plan = assemble("mine", blocks, 2, timings, departures)
    order = list(range(len(departures)))
    for _ in range(swaps):
        place = pick.randrange(1, len(order))
        order[place - 1], order[place] = order[place], order[place - 1]
    moved = [departures[place] for place in order]
    made = made_or_refused(lambda: assemble("mine", blocks, 2, timings, moved))
    assert made_or_refused(lambda: reordered(plan, departures, order)) == made
