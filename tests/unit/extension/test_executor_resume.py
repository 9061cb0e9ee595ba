"""Leaving a cycle and coming back into its middle, at any boundary of any plan."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deft_horovod.runtime.extension import native
from tests.unit.support.random_plans import plans


class Run:
    """An executor whose links complete whatever is pending, in any order."""

    def __init__(self, plan, pick):
        self.plan, self.pick = plan, pick
        self.links = [native.ManualLink() for _ in plan.links]
        self.executor = native.Executor(native.Plan(plan.model_dump()), self.links)
        self.sent = []

    def settle(self):
        """Until nothing more can leave."""
        while True:
            flying = [(link, name) for link in self.links for name in link.pending()]
            if not flying:
                return
            link, name = self.pick.choice(flying)
            self.sent.append((self.links.index(link), name))
            link.complete(name)

    def step(self):
        """One whole step; what is due is applied, gates included. What left, and what was due."""
        self.sent = []
        self.executor.begin_backward()
        for slot in range(len(self.plan.slots)):
            self.executor.slot_ready(slot)
        self.settle()
        dues = self.executor.due()
        self.executor.end_step()
        self.settle()  # gated ones may leave in the next forward only
        for due in dues:
            assert self.executor.wait(due, 0.0)
            self.executor.release(due)
        return sorted(self.sent), [key(due) for due in dues]

    def alive(self):
        return [
            (*key(due), due.last_step, self.executor.inspect(due).progress)
            for due in self.executor.alive()
        ]


def key(due):
    return due.generation, due.bucket, due.first_step, due.apply_step, due.buffer


@settings(max_examples=200)
@given(plans(), st.integers(0, 8), st.randoms(use_true_random=False))
def test_an_executor_that_resumes_goes_on_as_the_one_that_stayed(plan, steps, pick):
    assume(all(link.plan_order for link in plan.links))
    stayed = Run(plan, pick)
    for _ in range(steps):
        stayed.step()
    resumed = Run(plan, pick)
    resumed.executor.resume_at(steps)
    assert resumed.executor.step == steps
    assert resumed.alive() == stayed.alive()
    for _ in range(2 * plan.period + 2):
        assert resumed.step() == stayed.step()
        assert resumed.alive() == stayed.alive()


@settings(max_examples=200)
@given(plans(), st.integers(0, 8), st.randoms(use_true_random=False))
def test_a_flush_sends_everything_that_has_begun_and_nothing_else(plan, steps, pick):
    run = Run(plan, pick)
    for _ in range(steps):
        run.step()
    alive = run.executor.alive()
    left = [due for due in alive if run.executor.inspect(due).progress != "reduced"]
    for due in alive:
        assert due.first_step <= due.last_step < steps <= due.apply_step
    assert [due.apply_step for due in alive] == sorted(due.apply_step for due in alive)
    run.sent = []
    run.executor.flush()
    run.settle()
    assert len(run.sent) >= len(left)
    for due in alive:
        assert run.executor.wait(due, 0.0)
        run.executor.release(due)
    assert run.executor.alive() == []
    with pytest.raises(native.ExecutorError, match="after flush"):
        run.executor.begin_backward()


@given(plans(), st.integers(1, 6), st.randoms(use_true_random=False))
def test_every_gradient_is_released_once_or_alive(plan, steps, pick):
    """Nothing is lost: what was applied and what is alive cover every step of every bucket."""
    run = Run(plan, pick)
    covered = []
    for _ in range(steps):
        run.executor.begin_backward()
        for slot in range(len(plan.slots)):
            run.executor.slot_ready(slot)
        run.settle()
        dues = run.executor.due()
        run.executor.end_step()
        run.settle()
        for due in dues:
            covered += [(due.bucket, step) for step in range(due.first_step, due.last_step + 1)]
            run.executor.release(due)
    for due in run.executor.alive():
        covered += [(due.bucket, step) for step in range(due.first_step, due.last_step + 1)]
    expected = [(b, step) for b in range(len(plan.buckets)) for step in range(steps)]
    assert sorted(covered) == sorted(expected)


@given(plans())
def test_flush_inside_backward_is_refused(plan):
    executor = native.Executor(
        native.Plan(plan.model_dump()), [native.ManualLink()] * len(plan.links)
    )
    executor.begin_backward()
    with pytest.raises(native.ExecutorError, match="inside the backward"):
        executor.flush()
