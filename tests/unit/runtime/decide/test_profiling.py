"""The profile of one optimizer, from when it is taken to when it is forgotten."""

import pytest
import torch
from torch import nn

from deft_horovod.runtime.decide.profiling import Profiling
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from tests.unit.support.solo import Solo


class Job:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.members = tuple(NamedParameter(*pair) for pair in self.model.named_parameters())
        self.observer = Observer(self.members, 1, watch_forward=True)
        self.profiling = Profiling(self.optimizer)

    def step(self):
        self.optimizer.zero_grad()
        self.model(torch.ones(3, 4)).sum().backward()
        profiler = self.profiling.profiler
        profiler.begin_boundary()
        self.observer.end_step()
        profiler.end_boundary(None)
        self.optimizer.step()

    def profile(self, steps, of):
        self.profiling.begin(self.observer, 1, of)
        for _ in range(1 + steps):
            self.step()
        return self.profiling.end(Solo(), ())


@pytest.fixture
def job():
    made = Job()
    yield made
    made.profiling.forget()
    made.observer.detach()


@pytest.mark.parametrize("steps", [2, 5])
def test_it_is_known_once_it_was_taken_and_may_end_early(job, steps):
    assert job.profiling.profile is None
    assert job.profiling.of(job.members) is None
    profile = job.profile(steps, of=5)
    assert job.profiling.profile is profile
    assert job.profiling.profiler is None
    assert profile.steps == steps
    # No hook is left that would go on measuring.
    assert not job.optimizer._optimizer_step_post_hooks
    assert job.profiling.of(job.members) == profile
    part = job.profiling.of(job.members[2:])
    assert [tensor.name for tensor in part.tensors] == ["1.weight", "1.bias"]


def test_it_belongs_to_its_members(job):
    assert not job.profiling.is_of(job.members)
    job.profile(2, of=2)
    assert job.profiling.is_of(job.members)
    assert not job.profiling.is_of(job.members[1:])


def test_another_number_of_ranks_changes_nothing_else(job):
    before = job.profile(2, of=2)
    job.profiling.carry_over((), 7)
    assert job.profiling.profile == before.model_copy(update={"size": 7})


def test_what_is_being_taken_can_be_given_up(job):
    before = job.profile(2, of=2)
    job.profiling.drop_unfinished()
    assert job.profiling.profile is before
    job.profiling.begin(job.observer, 1, 3)
    assert job.profiling.profile is None
    job.profiling.drop_unfinished()
    assert job.profiling.profiler is None
    assert not job.optimizer._optimizer_step_post_hooks
