"""One rank with the real Horovod and the real executor."""

import horovod.torch as stock
import pytest
import torch

from deft_horovod import policies
from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.policies.base import Request
from deft_horovod.profile import Profile
from deft_horovod.runtime.measure.step_clock import StepClock
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce.encoded import LinkPath
from deft_horovod.runtime.reduce.merging import Merging
from deft_horovod.runtime.reduce.planned import PlannedReducer, Route, open_link
from deft_horovod.runtime.reduce.rests import Rests

SUM = Merging(mean=False, faster=False)


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


def reducer(policy, prefix, shapes=((3,), (40, 40), (2, 2)), rests=None):
    tensors = [torch.nn.Parameter(torch.zeros(shape)) for shape in shapes]
    for i, tensor in enumerate(tensors):
        tensor.grad = torch.full(tensor.shape, float(i + 1))
    mine = [NamedParameter(f"p{i}", tensor) for i, tensor in enumerate(tensors)]
    request = Request(
        parameters=tuple(
            Parameter(m.name, m.tensor.numel(), "float32", "float32", "cpu") for m in mine
        ),
        profile=Profile.assumed(len(mine)),
        config=Config.load({"policy": policy, "partition_bytes": 1024}),
    )
    reduction = Reduction(stock.Sum, stock.Compression.none, 1.0, False, stock.global_process_set)
    plan = policies.get(policy).plan(request)
    paths = {link.name: LinkPath(open_link(reduction)) for link in plan.links}
    return PlannedReducer(
        mine, plan, Route(reduction, paths, prefix, 10.0, SUM, "none"), StepClock(), rests=rests
    )


@pytest.mark.parametrize("policy", ["wfbp", "bucket", "priority"])
def test_every_gradient_comes_back(policy):
    mine = reducer(policy, f"unit.planned.{policy}")
    assert mine.finish(hold_gated=False) == []
    for i, member in enumerate(mine.members):
        assert torch.equal(member.tensor.grad, torch.full(member.tensor.shape, float(i + 1)))


def test_gated_generations_may_be_held_and_local_gradients_are_dropped():
    mine = reducer("priority", "unit.planned.held")
    held = mine.finish(hold_gated=True)
    assert mine.members_of(held) == {0, 1, 2}
    assert all(member.tensor.grad is None for member in mine.members)
    mine.take(held)
    for i, member in enumerate(mine.members):
        assert torch.equal(member.tensor.grad, torch.full(member.tensor.shape, float(i + 1)))


@pytest.mark.parametrize("policy", ["bucket", "dear"])
def test_what_a_plan_before_has_left_travels_with_the_first_gradients(policy):
    rests = Rests()
    rests.restore({"values": {"p1": torch.full((1600,), 4.0)}})
    mine = reducer(policy, f"unit.planned.left.{policy}", rests=rests)
    for extra in (4.0, 0.0):
        for i, member in enumerate(mine.members):
            member.tensor.grad = torch.full(member.tensor.shape, float(i + 1))
        mine.finish(hold_gated=False)
        for i, member in enumerate(mine.members):
            expected = i + 1 + (extra if i == 1 else 0.0)
            assert torch.equal(member.tensor.grad, torch.full(member.tensor.shape, expected))
    assert mine.rounding_errors() == []
    mine.close()
    assert rests.to_state()["values"] == {}


def test_a_replan_request_is_read_once_where_it_was_asked():
    mine = reducer("bucket", "unit.planned.replan")
    assert not mine.take_replan_request()
    mine.session.request_replan()
    mine.finish(hold_gated=False)
    assert mine.take_replan_request()
    assert not mine.take_replan_request()


def test_a_parameter_without_any_gradient_gets_zeros_unless_it_is_frozen():
    mine = reducer("bucket", "unit.planned.missing")
    for member in mine.members[:2]:
        member.tensor.grad = None
    mine.members[0].tensor.requires_grad_(False)
    mine.finish(hold_gated=False)
    assert mine.members[0].tensor.grad is None
    gradient = mine.members[1].tensor.grad
    assert gradient is not None
    assert not gradient.any()


def test_a_closed_reducer_sends_nothing_more():
    mine = reducer("bucket", "unit.planned.closed")
    mine.close()
    mine.session.close_step()
    assert mine.session.wait_idle(1.0) is False
    assert mine.session.failure() == "the plan was replaced"
    assert [link.messages for link in mine.session.link_stats()] == [0]
