import numpy as np
import pytest
import torch
from torch import nn

from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.measure.rank_report import names_of, rank_report, undisturbed
from deft_horovod.runtime.measure.step_record import STAGES, ModuleTimes, StepTimes
from deft_horovod.runtime.ranks.named_parameters import NamedParameter

NAN = float("nan")


@pytest.fixture
def seen():
    """An observer that has seen a step of each model given."""
    made = []

    def observe(*models, names=None):
        named = [pair for model in models for pair in model.named_parameters()]
        members = tuple(
            NamedParameter(name if names is None else names[i], tensor)
            for i, (name, tensor) in enumerate(named)
        )
        made.append(Observer(members, 1, True))
        for model in models:
            model(torch.ones(1, 2)).sum().backward()
        made[-1].end_step()
        return members, made[-1]

    yield observe
    for observer in made:
        observer.detach()


def step(ready_us, *, forward_us=100.0, modules=None, evaluated=False, order=()):
    return StepTimes(
        stages=dict.fromkeys(STAGES, forward_us),
        ready_us=np.array(ready_us),
        modules=modules,
        order=order,
        evaluated=evaluated,
    )


def timed(first_call_us, own_us):
    return ModuleTimes(np.array(first_call_us), np.array(own_us))


def layer():
    return nn.Linear(2, 2, bias=False)


def test_medians_over_the_steps_in_which_it_was_seen(seen):
    model = nn.Sequential(layer(), layer(), layer())
    members, observer = seen(model)
    steps = [
        step([30.0, NAN, NAN], forward_us=1.0),
        step([50.0, 20.0, NAN], forward_us=2.0),
        step([40.0, 10.0, NAN], forward_us=6.0),
    ]
    report = rank_report(4, steps, observer, members, ())
    assert (report.rank, report.steps) == (4, 3)
    assert report.ready_us == (40.0, 15.0, None)
    assert report.ready_order == (1, 0)
    assert report.first_use_us == (None, None, None)
    assert report.stages[0].median_us == 2.0
    assert report.stages[0].p10_us == pytest.approx(1.2)
    assert report.stages[0].p90_us == pytest.approx(5.2)


def test_modules_and_first_uses_come_from_the_steps_that_timed_them(seen):
    model = nn.Sequential(layer(), layer())
    members, observer = seen(model)
    modules = (model[0], model[1])
    steps = [
        step([9.0, 8.0], modules=timed([1.0, 5.0], [3.0, NAN])),
        step([9.0, 8.0], modules=timed([3.0, 7.0], [5.0, NAN])),
        step([20.0, 10.0]),
    ]
    report = rank_report(0, steps, observer, members, modules)
    assert report.first_use_us == (2.0, 6.0)
    assert [(m.name, m.type, m.forward_us) for m in report.modules] == [("0", "Linear", 4.0)]
    assert report.modules[0].parameters == (0,)
    # What timing costs is not in the rest.
    assert report.ready_us == (20.0, 10.0)


def test_indices_are_those_of_the_members_asked_for(seen):
    model = nn.Sequential(layer(), layer(), layer())
    members, observer = seen(model)
    steps = [step([3.0, 2.0, 1.0], modules=timed([0.0, 1.0, 2.0], [7.0, 8.0, 9.0]))]
    report = rank_report(0, steps, observer, [members[2], members[0]], tuple(model))
    assert report.ready_us == (1.0, 3.0)
    assert report.ready_order == (0, 1)
    assert report.first_use_us == (2.0, 0.0)
    assert [(m.name, m.parameters) for m in report.modules] == [("0", (1,)), ("2", (0,))]


def test_gradients_that_are_ready_at_the_same_time_go_as_in_the_last_step(seen):
    members, observer = seen(nn.Sequential(layer(), layer()))
    report = rank_report(0, [step([5.0, 5.0], order=(1, 0))], observer, members, ())
    assert report.ready_order == (1, 0)


def test_without_steps_there_is_nothing_to_say(seen):
    members, observer = seen(nn.Sequential(layer()))
    report = rank_report(0, [], observer, members, ())
    assert (report.steps, report.stages, report.ready_us) == (0, (), (None,))


def test_steps_with_an_evaluation_are_left_out_unless_most_have_one():
    quiet, noisy = step([1.0]), step([2.0], evaluated=True)
    assert undisturbed([quiet, noisy, quiet]) == [quiet, quiet]
    assert undisturbed([noisy, quiet, noisy]) == [noisy, quiet, noisy]
    assert undisturbed([]) == []


def test_with_one_outermost_module_names_are_paths(seen):
    model = nn.Sequential(layer(), nn.Sequential(layer()))
    _, observer = seen(model, names=["x", "y"])
    modules = (model, model[0], model[1][0])
    expected = [("", "Sequential"), ("0", "Linear"), ("1.0", "Linear")]
    assert names_of(modules, observer) == expected


def test_with_several_names_come_from_the_parameters(seen):
    one, other = nn.Sequential(layer()), nn.Linear(2, 2)
    _, observer = seen(one, other, names=["first.0.weight", "last.weight", "last.bias"])
    assert names_of((one[0], other), observer) == [("first.0", "Linear"), ("last", "Linear")]
