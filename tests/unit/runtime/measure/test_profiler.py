"""The profiler on real modules, in one process; layers that sleep take a known time."""

import copy
import gc
import itertools
import time
import weakref

import pytest
import torch
from torch import nn

from deft_horovod.profile import LinkCost, LinkProfile, Profile
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.measure.profiler import Profiler
from deft_horovod.runtime.measure.timestamps import DeviceClock
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from tests.unit.support.solo import Solo

WAIT_S = 0.006


class Sleep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, forward_s, backward_s):
        ctx.backward_s = backward_s
        ctx.save_for_backward(weight)
        time.sleep(forward_s)
        return x + weight.sum()

    @staticmethod
    def backward(ctx, gradient):
        (weight,) = ctx.saved_tensors
        time.sleep(ctx.backward_s)
        return gradient, gradient.sum().expand_as(weight), None, None


class Layer(nn.Module):
    def __init__(self, forward_s=0.0, backward_s=0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))
        self.times_s = (forward_s, backward_s)

    def forward(self, x):
        return Sleep.apply(x, self.weight, *self.times_s)


class Job:
    """A model in training, as the engine would have it measured."""

    def __init__(self, model, warmup=1, steps=3, passes=1, clock=None):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        self.members = tuple(NamedParameter(*pair) for pair in model.named_parameters())
        self.observer = Observer(self.members, passes, True)
        self.profiler = Profiler(self.observer, self.optimizer, warmup, steps, clock)
        self.steps = 0

    def boundary(self):
        self.profiler.begin_boundary()
        self.observer.end_step()
        time.sleep(WAIT_S)
        self.profiler.end_boundary(None)

    def step(self, forward=None):
        self.optimizer.zero_grad()
        model = self.model if forward is None else forward
        model(torch.ones(3)).sum().backward()
        self.boundary()
        self.optimizer.step()
        self.steps += 1

    def profile(self, forward=None):
        while not self.profiler.complete:
            self.step(forward)
        return self.profiler.profile(Solo(), self.members)

    def close(self):
        self.profiler.detach()
        self.observer.detach()


@pytest.fixture
def job():
    made = []

    def make(model, **options):
        made.append(Job(model, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def about(seconds):
    """Sleeping takes no less, and on a busy machine more."""
    return pytest.approx(seconds * 1e6 + 2000, abs=2000 + seconds * 0.3e6)


def test_stages_modules_and_gradients_take_the_time_that_they_take(job):
    model = nn.Sequential(Layer(0.02, 0.03), Layer(0.01, 0.04))
    training = job(model, steps=4)
    profile = training.profile()
    assert training.steps == 5
    assert (profile.steps, profile.size) == (4, 1)
    assert profile.forward_us == about(0.03)
    assert profile.backward_us == about(0.07)
    assert profile.optimizer_us < 5000
    assert [m.name for m in profile.modules] == ["0", "1"]
    assert [m.forward_us for m in profile.modules] == [about(0.02), about(0.01)]
    assert [m.parameters for m in profile.modules] == [(0,), (1,)]
    assert profile.ready_order == (1, 0)
    assert profile.ready_us[1] == about(0.04)
    assert profile.ready_us[0] == about(0.07)
    assert profile.first_use_us[1] == about(0.02)
    assert profile.compute_us + WAIT_S * 1e6 == pytest.approx(profile.step_us, rel=0.1)
    assert [t.name for t in profile.tensors] == ["0.weight", "1.weight"]
    assert (profile.tensors[0].shape, profile.tensors[0].dtype) == ((3,), "float32")


def test_backward_begins_with_the_loss_and_not_with_the_first_gradient(job):
    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer()

        def forward(self, x):
            return Sleep.apply(self.layer(x), torch.zeros(1), 0.0, 0.03)

    profile = job(Loss()).profile()
    assert profile.ready_us[0] == about(0.03)
    assert profile.backward_us == about(0.03)


def test_what_happens_between_steps_belongs_to_forward(job):
    training = job(nn.Sequential(Layer(0.01)))

    def with_data(x):
        time.sleep(0.02)
        return training.model(x)

    profile = training.profile(with_data)
    assert profile.forward_us == about(0.03)
    assert profile.first_use_us[0] == about(0.02)
    assert profile.modules[0].forward_us == about(0.01)


def test_a_module_that_is_called_several_times_takes_the_sum(job):
    layer = Layer(0.01, 0.01)
    profile = job(nn.Sequential(layer, nn.ReLU(), layer)).profile()
    assert [(m.name, m.parameters) for m in profile.modules] == [("0", (0,))]
    assert profile.modules[0].forward_us == about(0.02)
    assert profile.ready_us[0] == about(0.02)  # the gradient is complete after both


class Outer(nn.Module):
    """Owns a parameter and a module that owns one."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.inner = Layer(0.02)

    def forward(self, x):
        time.sleep(0.01)
        return self.inner(x * self.scale)


def test_time_inside_another_owner_counts_once(job):
    profile = job(Outer()).profile()
    assert {m.name: m.forward_us for m in profile.modules} == {
        "": about(0.01),
        "inner": about(0.02),
    }


def test_with_several_passes_the_last_backward_is_the_stage(job):
    training = job(nn.Sequential(Layer(0.01, 0.02)), passes=2)

    def first_pass_then_forward(x):
        training.model(x).sum().backward()
        return training.model(x)

    profile = training.profile(first_pass_then_forward)
    assert profile.forward_us == about(0.04)  # forward, backward, forward
    assert profile.backward_us == about(0.02)
    assert profile.ready_us[0] == about(0.02)
    assert profile.modules[0].forward_us == about(0.02)


def test_gradients_computed_in_forward_are_part_of_it(job):
    training = job(nn.Sequential(Layer(0.01, 0.02)))

    def penalty(x):
        out = training.model(x)
        torch.autograd.grad(out.sum(), training.model[0].weight, retain_graph=True)
        return out

    profile = training.profile(penalty)
    assert profile.forward_us == about(0.03)
    assert profile.backward_us == about(0.02)


def test_an_evaluation_now_and_then_does_not_count(job):
    training = job(nn.Sequential(Layer(0.005)), steps=5)
    while not training.profiler.complete:
        training.step()
        if training.steps == 4:
            with torch.no_grad():
                training.model(torch.ones(3))
                time.sleep(0.1)
    profile = training.profiler.profile(Solo(), training.members)
    assert profile.steps == 4
    assert profile.spreads[0].p90_us < 50_000


def test_a_closure_is_measured_like_a_step(job):
    training = job(nn.Sequential(Layer(0.01, 0.02)))

    def closure():
        training.optimizer.zero_grad()
        loss = training.model(torch.ones(3)).sum()
        loss.backward()
        training.boundary()
        return loss

    while not training.profiler.complete:
        training.optimizer.step(closure)
    profile = training.profiler.profile(Solo(), training.members)
    assert profile.forward_us == about(0.01)
    assert profile.backward_us == about(0.02)


def test_a_step_that_is_thrown_away_counts_but_says_nothing(job):
    training = job(nn.Sequential(Layer(0.0, 0.005)), steps=3)
    training.step()
    training.model(torch.ones(3)).sum().backward()
    time.sleep(0.05)
    training.observer.collector.reset()
    training.profiler.skip_step()
    profile = training.profile()
    assert training.steps == 3
    assert profile.steps == 2
    assert profile.spreads[1].p90_us < 50_000


def test_steps_without_gradients_leave_the_first_impression(job):
    training = job(nn.Sequential(Layer()), steps=2)
    training.step()
    for _ in range(2):
        training.boundary()
    link = LinkProfile(name="horovod", cost=LinkCost(alpha_us=1.0, beta_us_per_byte=0.5))
    profile = training.profiler.profile(Solo(), training.members, [link])
    assert training.profiler.complete
    assert profile.steps == 0
    assert profile.link == link.cost


@pytest.mark.parametrize(("warmup", "steps", "boundaries"), [(0, 1, 2), (1, 1, 2), (3, 10, 13)])
def test_it_is_complete_after_so_many_boundaries(job, warmup, steps, boundaries):
    training = job(nn.Sequential(Layer()), warmup=warmup, steps=steps)
    profile = training.profile()
    assert training.steps == boundaries
    assert profile.steps == steps
    assert profile.first_use_us[0] is not None
    assert len(profile.modules) == 1


def test_once_complete_no_hook_is_left_and_nothing_changes(job):
    training = job(nn.Sequential(Layer(), Layer()))
    before = training.profile()
    for module in training.model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
    assert not training.optimizer._optimizer_step_post_hooks
    training.step()
    training.profiler.skip_step()
    assert training.profiler.profile(Solo(), training.members) == before


def test_training_is_what_it_is_without(job):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    other = copy.deepcopy(model)
    training = job(model)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.01)
    while not training.profiler.complete:
        training.step()
        optimizer.zero_grad()
        other(torch.ones(3)).sum().backward()
        optimizer.step()
    for mine, plain in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, plain)


def test_a_compiled_model_is_one_module(job):
    training = job(nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)), warmup=2)
    profile = training.profile(torch.compile(training.model, backend="aot_eager"))
    assert [(m.type, m.parameters) for m in profile.modules] == [("OptimizedModule", (0, 1, 2, 3))]
    assert len(set(profile.first_use_us)) == 1
    assert 0 < profile.modules[0].forward_us <= profile.forward_us
    assert profile.backward_us > 0


def test_it_can_be_stopped_before_it_is_complete(job):
    training = job(nn.Sequential(Layer()), steps=50)
    for _ in range(3):
        training.step()
    training.profiler.detach()
    training.profiler.detach()
    training.step()
    assert not training.optimizer._optimizer_step_post_hooks


def test_nothing_keeps_it_alive_and_its_hooks_go_with_it(job):
    training = job(nn.Sequential(Layer()), steps=50)
    for _ in range(3):
        training.step()
    gone = weakref.ref(training.profiler)
    assert training.model[0]._forward_hooks
    training.profiler = Profiler(training.observer, training.optimizer, 1, 2)
    gc.collect()
    assert gone() is None
    assert not training.model[0]._forward_hooks
    assert len(training.optimizer._optimizer_step_post_hooks) == 1


def test_a_long_measurement_keeps_what_is_read(job):
    training = job(nn.Sequential(Layer()), steps=80)
    assert training.profile().steps == 80


class Stream:
    """A device that runs behind the host: where it is, is known only once it was waited for."""

    def __init__(self):
        self.ms = itertools.count(0, 5)
        self.waited = 0

    def leave_event(self, _):
        return Event(self, next(self.ms))


class Event:
    def __init__(self, stream, ms):
        self._stream, self._ms = stream, ms

    def synchronize(self):
        self._stream.waited += 1

    def elapsed_time(self, later):
        assert self._stream.waited, "read before it had passed"
        return float(later._ms - self._ms)


def test_on_a_device_its_moments_count_and_nobody_waits_in_a_step(job):
    """Every event is 5 ms after the one before it, however long the host takes."""
    stream = Stream()
    clock = DeviceClock(torch.device("cpu"), stream.leave_event)
    training = job(nn.Sequential(Layer(), Layer()), steps=2, clock=clock)
    while not training.profiler.complete:
        training.step()
        assert stream.waited == 0
    profile = training.profiler.profile(Solo(), training.members)
    assert stream.waited == 2
    # done, updated | pass | gradient, gradient | asked, done
    assert profile.optimizer_us == 5000.0
    assert profile.backward_us == 15_000.0
    assert profile.ready_us == (10_000.0, 5_000.0)
    assert profile.ready_order == (1, 0)
    assert [m.forward_us for m in profile.modules] == [5000.0, 5000.0]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_a_step_is_as_long_as_the_gpu_takes():
    model = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(4))).cuda()
    training = Job(model, steps=6)
    x = torch.ones(4096, 2048, device="cuda")
    profile = training.profile(lambda _: model(x))
    training.close()
    assert profile.step_us >= profile.compute_us > 0
    assert len(profile.modules) == 4
    assert sum(m.forward_us for m in profile.modules) <= profile.forward_us
    assert profile.ready_order[-1] in (0, 1)


def test_a_profile_can_be_saved_and_read(job, tmp_path):
    profile = job(nn.Sequential(Layer())).profile()
    profile.save(tmp_path / "profile.json")
    assert Profile.load(tmp_path / "profile.json") == profile
