"""What the installer puts to work is complete: gradients flow into it at once. One real rank."""

from types import SimpleNamespace

import horovod.torch as stock
import pytest
import torch

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.decide.control import Control
from deft_horovod.runtime.decide.planning import Assignment
from deft_horovod.runtime.installer import Installer
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.measure.step_clock import StepClock
from deft_horovod.runtime.process import Process
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.groups import Groups
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce.installed import Installed
from deft_horovod.runtime.reduce.loss_scale import LossScales


@pytest.fixture
def job(request):
    """An optimizer whose ranks have met, and its plan."""
    stock.init()
    layer = torch.nn.Linear(3, 2)
    inner = torch.optim.SGD(layer.parameters(), lr=1.0)
    members = [NamedParameter(name, tensor) for name, tensor in layer.named_parameters()]
    reduction = Reduction(stock.Sum, stock.Compression.none, 1.0, False, stock.global_process_set)
    brief = Brief(policies.get("bucket"), Config(), reduction, Groups(()))
    scales = LossScales()
    control = Control(brief, inner, scales, Process())
    observer = Observer(members, 1, watch_forward=False)
    agreement = Agreement(stock.global_process_set, 10.0)
    number = abs(hash(request.node.name)) % 1_000_000
    control.meet(agreement, observer, number)
    layer(torch.ones(1, 3)).sum().backward()
    observer.end_step()
    inner.zero_grad()
    assignment = control.assign(agreement, observer)
    installer = Installer(brief, inner, scales, StepClock(), control)
    return SimpleNamespace(
        installer=installer,
        layer=layer,
        members=members,
        observer=observer,
        assignment=assignment,
        number=number,
    )


def test_gradients_flow_into_the_plan_from_the_next_backward_on(job):
    hooks = job.installer.stock_hooks((), job.number, 1)
    installed = job.installer.install(job.assignment, job.observer, job.number, hooks)
    assert installed.stock is None
    assert installed.planned is not None
    job.layer(torch.ones(1, 3)).sum().backward()
    expected = [member.tensor.grad.clone() for member in job.members]
    assert installed.finish(StepClock(), hold_gated=False) == []
    assert sum(sent.bytes for sent in installed.planned.sent()) > 0
    for member, gradient in zip(job.members, expected, strict=True):
        assert torch.equal(member.tensor.grad, gradient)
    assert installed.close_plan() == 0


def test_a_cycle_that_begins_anew_goes_on_counting(job):
    first = job.installer.install(job.assignment, job.observer, job.number, None)
    job.layer(torch.ones(1, 3)).sum().backward()
    first.finish(StepClock(), hold_gated=False)
    before = first.planned.sent()
    first.close_plan()
    again = job.installer.install(job.assignment, job.observer, job.number, None, before)
    assert again.planned.sent() == before


def test_without_a_plan_only_the_stock_way_is_installed(job):
    members = tuple(job.members)
    nothing = Assignment(None, (), members)
    hooks = job.installer.stock_hooks(members, job.number, 1)
    assert job.installer.install(nothing, job.observer, job.number, hooks) == Installed(stock=hooks)
    hooks.detach()
