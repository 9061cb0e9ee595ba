"""The C++ executor against a slow reference, event by event, under random completion order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod.plan import Arena, Bucket, Generation, Link, Plan, Slot, Task
from deft_horovod.runtime.extension import native
from tests.unit.support.random_plans import plans
from tests.unit.support.reference_executor import ReferenceExecutor

_STEPS = 7


class Twins:
    """The executor and its reference, fed with the same events."""

    def __init__(self, plan):
        self.plan = plan
        self.links = [native.ManualLink() for _ in plan.links]
        self.real = native.Executor(native.Plan(plan.model_dump()), self.links)
        self.reference = ReferenceExecutor(plan)

    def check(self):
        flying = 0
        for index, (link, spec) in enumerate(zip(self.links, self.plan.links, strict=True)):
            real, expected = link.pending(), self.reference.pending(index)
            flying += len(expected)
            assert sorted(real) == sorted(expected)
            assert link.sent() == len(self.reference.sent[index])
            if spec.plan_order:
                assert real == expected
        assert self.real.in_flight() == flying
        assert self.real.step == self.reference.step

    def begin_backward(self):
        self.real.begin_backward()
        self.reference.begin_backward()
        self.check()

    def slot_ready(self, slot):
        self.real.slot_ready(slot)
        self.reference.slot_ready(slot)
        self.check()

    def complete_one(self, pick):
        """False when nothing is in flight."""
        flying = [(i, name) for i, link in enumerate(self.links) for name in link.pending()]
        if not flying:
            return False
        index, name = pick.choice(sorted(flying))
        self.links[index].complete(name)
        self.reference.complete(index, name)
        self.check()
        return True

    def due(self):
        dues = self.real.due()
        assert self.reference.due() == [
            (d.generation, d.bucket, d.first_step, d.last_step, d.buffer, d.gated) for d in dues
        ]
        return dues

    def run_of(self, due):
        shift = due.first_step - self.plan.generations[due.generation].first_step
        return due.generation, shift // self.plan.period

    def is_reduced(self, due):
        run = self.run_of(due)
        reduced = self.reference.is_reduced(*run)
        assert self.real.inspect(due).progress == self.reference.progress(*run)
        assert self.real.wait(due, 0.0) == reduced
        return reduced

    def reduce(self, due, pick):
        while not self.is_reduced(due):
            assert self.complete_one(pick), "nothing is in flight and something due is missing"

    def release(self, due):
        self.real.release(due)
        self.reference.release(*self.run_of(due))

    def end_step(self):
        self.real.end_step()
        self.reference.end_step()
        self.check()


def _forward(twins, held, pick):
    """Gates open in any order; some only when their buffer is needed."""
    for due in pick.sample(held, len(held)):
        for _ in range(pick.randint(0, 2)):
            twins.complete_one(pick)
        if pick.random() < 0.7:
            twins.reduce(due, pick)
            twins.release(due)
            held.remove(due)
    blocking = twins.reference.blocking()
    if not blocking:
        return
    with pytest.raises(native.ExecutorError, match="was not released"):
        twins.real.begin_backward()
    for due in [due for due in held if twins.run_of(due) in blocking]:
        twins.reduce(due, pick)
        twins.release(due)
        held.remove(due)


def _backward(twins, pick):
    twins.begin_backward()
    for slot in pick.sample(range(len(twins.plan.slots)), len(twins.plan.slots)):
        for _ in range(pick.choice([0, 0, 1, 3])):
            twins.complete_one(pick)
        twins.slot_ready(slot)


@settings(max_examples=150)
@given(plans(), st.randoms(use_true_random=False))
def test_it_does_what_the_reference_does(plan, pick):
    twins = Twins(plan)
    held = []
    for _ in range(_STEPS):
        _forward(twins, held, pick)
        _backward(twins, pick)
        for due in twins.due():
            if due.gated and pick.random() < 0.8:
                held.append(due)
                continue
            if not due.gated or twins.is_reduced(due):
                twins.reduce(due, pick)
                twins.release(due)
            else:
                held.append(due)
        twins.end_step()
    assert sum(link.sent() for link in twins.links) > 0


@settings(max_examples=50)
@given(plans(), st.randoms(use_true_random=False))
def test_a_failed_message_stops_everything_and_answers_everyone(plan, pick):
    twins = Twins(plan)
    _backward(twins, pick)
    flying = [(i, name) for i, link in enumerate(twins.links) for name in link.pending()]
    if not flying:
        return
    index, name = pick.choice(flying)
    sent = [link.sent() for link in twins.links]
    twins.links[index].complete(name, "the peer died")
    twins.reference.fail(index, name)
    while any(link.pending() for link in twins.links):
        link = next(link for link in twins.links if link.pending())
        link.complete(link.pending()[0])
    assert [link.sent() for link in twins.links] == sent
    missing = [due for due in twins.real.due() if not twins.real.wait(due, 5.0)]
    for due in missing:
        pending = twins.real.inspect(due)
        assert pending.progress == "failed"
        assert "the peer died" in pending.held_by
    if missing and any(not due.gated for due in missing):
        with pytest.raises(native.ExecutorError, match="the peer died"):
            twins.real.end_step()


def _three(**link):
    """Three buckets of one slot of 8 elements (32 bytes) each, sent in the order 2, 0, 1."""
    return Plan(
        policy="hand-made",
        links=(Link(name="link", **link),),
        arenas=(Arena(dtype="float32", wire="float32", device="cpu", elements=24),),
        slots=tuple(Slot(name=f"s{i}", arena=0, begin=8 * i, end=8 * i + 8) for i in range(3)),
        buckets=tuple(Bucket(arena=0, begin=8 * i, end=8 * i + 8) for i in range(3)),
        generations=tuple(Generation(bucket=i) for i in range(3)),
        tasks=tuple(Task(generation=i) for i in (2, 0, 1)),
    )


def _made(plan):
    links = [native.ManualLink() for _ in plan.links]
    return native.Executor(native.Plan(plan.model_dump()), links), links[0]


def test_order_is_the_plans_and_not_that_of_readiness():
    executor, link = _made(_three())
    executor.begin_backward()
    executor.slot_ready(0)
    executor.slot_ready(1)
    assert link.pending() == []
    held = executor.inspect(_due_of_bucket(0))
    assert (held.progress, held.missing_slots) == ("held", [])
    assert held.held_by == (
        "plan: after bucket 2 in the order of link link (gradients: 1 of bucket 2 are missing)"
    )
    executor.slot_ready(2)
    assert link.pending() == ["t0.0", "t1.0", "t2.0"]


def _due_of_bucket(bucket):
    """In step 0, from a twin: due() itself wants every gradient first."""
    twin, _ = _made(_three())
    twin.begin_backward()
    for slot in range(3):
        twin.slot_ready(slot)
    return next(due for due in twin.due() if due.bucket == bucket)


@pytest.mark.parametrize(
    ("credit", "at_once", "held_by"),
    [
        ({"credit_messages": 2}, 2, "credit: 2 of 2 messages in flight on link link"),
        ({"credit_bytes": 64}, 2, "credit: 64 of 64 bytes in flight on link link"),
        ({"credit_bytes": 63}, 1, "credit: 32 of 63 bytes in flight on link link"),
        ({"credit_bytes": 1}, 1, "credit: 32 of 1 bytes in flight on link link"),
        ({}, 3, None),
    ],
)
def test_credit(credit, at_once, held_by):
    executor, link = _made(_three(**credit))
    executor.begin_backward()
    for slot in range(3):
        executor.slot_ready(slot)
    assert len(link.pending()) == at_once
    if held_by is not None:
        last = executor.due()[1]  # bucket 1, the third in the order of the plan
        assert held_by in executor.inspect(last).held_by
    most = at_once
    while link.pending():
        link.complete(link.pending()[-1])
        most = max(most, len(link.pending()))
    assert most == at_once
    assert link.sent() == 3
    assert executor.in_flight() == 0


def _misuse(executor, link, what):
    ready = executor.slot_ready
    if what == "twice":
        executor.begin_backward()
        ready(0)
        ready(0)
    elif what == "too early":
        ready(0)
    elif what == "no such slot":
        executor.begin_backward()
        ready(3)
    elif what == "end without gradients":
        executor.begin_backward()
        executor.end_step()
    elif what == "end without results":
        executor.begin_backward()
        for slot in range(3):
            ready(slot)
        executor.end_step()
    elif what == "release without result":
        executor.begin_backward()
        for slot in range(3):
            ready(slot)
        executor.release(executor.due()[0])
    else:
        link.complete("t9.0")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("twice", "slot 0 was reported ready in step 0 twice"),
        ("too early", "outside of its backward"),
        ("no such slot", "slot 3 is not one of the plan's 3"),
        ("end without gradients", "end_step.*slots? 0, 1, 2"),
        ("end without results", "bucket 0.*is not reduced"),
        ("release without result", "bucket 0 of step 0 was released while"),
        ("no such message", "message t9.0 is not in flight"),
    ],
)
def test_misuse_is_an_error_that_says_what_to_do(what, message):
    executor, link = _made(_three())
    with pytest.raises(native.ExecutorError, match=message) as caught:
        _misuse(executor, link, what)
    assert ": " in str(caught.value)


def test_it_wants_a_link_for_each_of_the_plan():
    with pytest.raises(native.ExecutorError, match=r"given 0 links.*the plan names 1"):
        native.Executor(native.Plan(_three().model_dump()), [])
