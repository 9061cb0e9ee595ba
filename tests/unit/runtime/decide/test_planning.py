"""Who travels how, with ranks that all say the same."""

from dataclasses import replace

import horovod.torch as stock
import pytest
import torch
from torch import nn

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.errors import PlanError
from deft_horovod.plan import Plan
from deft_horovod.policies.memory import Memory
from deft_horovod.preserver.judgement import Judgement
from deft_horovod.runtime.decide import planning
from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.decide.planning import assign, facts_of
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.ranks.groups import Groups
from deft_horovod.runtime.ranks.named_parameters import NamedParameter, dtype_name
from deft_horovod.runtime.ranks.reduction import Reduction


class Echo:
    """The answers of ranks that do what this one does; some may have seen sparse gradients."""

    def __init__(self, deciding=True, sparse_elsewhere=(), shared=None):
        self.deciding = deciding
        self.decider = 0
        self.equal = []
        self._sparse = sparse_elsewhere
        self._shared = shared

    def union(self, flags):
        return [flag or i in self._sparse for i, flag in enumerate(flags)]

    def share(self, text):
        return text if self._shared is None else self._shared

    def require_equal(self, facts):
        self.equal.append(facts)


def brief(policy="bucket", compression=stock.Compression.none, op=stock.Average):
    reduction = Reduction(op, compression, 1.0, False, stock.global_process_set)
    return Brief(policies.get(policy), Config(), reduction, Groups())


def observed(*tensors):
    members = [NamedParameter(f"p{i}", nn.Parameter(tensor)) for i, tensor in enumerate(tensors)]
    return Observer(members, 1, watch_forward=False)


def made_of(agreement, given, observer):
    return assign(agreement, given, observer, lambda members: observer.profile(members, None))


def test_the_deciding_rank_plans_for_all_and_all_verify():
    observer, echo = observed(torch.ones(3), torch.ones(5)), Echo()
    made = made_of(echo, brief(), observer)
    assert made.planned == observer.members
    assert made.stock == ()
    assert echo.equal == [{"plan": made.plan.hash()}]
    other = made_of(Echo(deciding=False, shared=made.plan.to_json()), brief(), observer)
    assert other.plan == made.plan


def test_what_is_sparse_on_any_rank_goes_the_stock_way_on_all():
    observer = observed(torch.ones(3), torch.ones(5), torch.ones(7))
    made = made_of(Echo(sparse_elsewhere={1}), brief(), observer)
    assert [m.name for m in made.planned] == ["p0", "p2"]
    assert [m.name for m in made.stock] == ["p1"]
    assert [slot.name for slot in made.plan.slots] == ["p0", "p2"]


def test_what_has_no_wire_goes_the_stock_way():
    made = made_of(Echo(), brief(), observed(torch.ones(3), torch.ones(3).to(torch.cfloat)))
    assert [m.name for m in made.stock] == ["p1"]


@pytest.mark.parametrize(
    "given", [brief("stock"), brief(op=stock.Min), brief(compression=type("Mine", (), {}))]
)
def test_without_anything_to_plan_there_is_no_plan(given):
    observer = observed(torch.ones(3))
    made = made_of(Echo(), given, observer)
    assert made.plan is None
    assert made.stock == observer.members


class Fails:
    name, summary, supports_groups, gates, uses_executor = "fails", "", True, False, True
    replan_after_steps = None

    def plan(self, _):
        raise ZeroDivisionError("in the solver")


def test_a_policy_that_fails_stops_every_rank():
    given = brief()
    broken = Brief(Fails(), given.config, given.reduction, given.groups)
    with pytest.raises(ZeroDivisionError):
        made_of(Echo(), broken, observed(torch.ones(3)))
    with pytest.raises(PlanError, match="could not make a plan") as caught:
        made_of(Echo(deciding=False, shared=""), broken, observed(torch.ones(3)))
    assert "rank 0" in str(caught.value)


def test_a_plan_that_was_cut_on_its_way_is_refused():
    with pytest.raises(PlanError):
        made_of(Echo(deciding=False, shared='{"version":1'), brief(), observed(torch.ones(3)))


def test_compression_is_a_wire_of_the_plan():
    given = brief(compression=stock.Compression.fp16)
    made = made_of(Echo(), given, observed(torch.ones(3)))
    assert {(a.dtype, a.wire) for a in made.plan.arenas} == {("float32", "float16")}
    assert isinstance(made.plan, Plan)


def test_over_torch_messages_keep_the_order_of_the_plan(monkeypatch):
    observer = observed(torch.ones(3), torch.ones(5))
    assert not made_of(Echo(), brief("wfbp"), observer).plan.links[0].plan_order
    monkeypatch.setattr(planning, "OVER_TORCH", True)
    assert made_of(Echo(), brief("wfbp"), observer).plan.links[0].plan_order


def test_facts_about_parameters():
    frozen = NamedParameter("b", torch.ones((), dtype=torch.bfloat16))
    assert facts_of([NamedParameter("a", nn.Parameter(torch.ones(2, 3))), frozen]) == [
        {"name": "a", "shape": [2, 3], "dtype": "float32", "device": "cpu", "trains": True},
        {"name": "b", "shape": [], "dtype": "bfloat16", "device": "cpu", "trains": False},
    ]
    assert dtype_name(torch.ones(1, dtype=torch.float16)) == "float16"


class Judging:
    """A guard that makes one plan."""

    def __init__(self, plan):
        self.made = plan, Judgement(budget=0.02, verdict="kept")

    def judge(self, policy, request):
        del policy, request
        return self.made


def test_with_a_guard_all_ranks_hear_its_judgement():
    class Relay(Echo):
        """The deciding rank's answers, in turn."""

        def share(self, text):
            if text is not None:
                told.append(text)
                return text
            return told.pop(0)

    told = []
    observer = observed(torch.ones(3))
    guard = Judging(made_of(Echo(), brief(), observer).plan)
    view = lambda members: observer.profile(members, None)  # noqa: E731
    mine = assign(Relay(), brief(), observer, view, guard)
    other = assign(Relay(deciding=False), brief(), observer, view, guard)
    assert mine.plan == other.plan == guard.made[0]
    assert mine.judgement == other.judgement == guard.made[1]
    assert not told


class Foreseen:
    """A policy that says what it was told to expect."""

    def __init__(self, order):
        self.order = order

    def of(self, policy):
        memory = Memory()
        memory.plan = lambda _, request: self.order.append("planned") or policy.plan(request)
        memory.foresee = lambda policy, request: self.order.append((policy.name, request))
        return memory.of(policy)


@pytest.mark.parametrize("deciding", [True, False])
def test_the_plan_of_a_phase_to_come_is_begun_before_this_one_is_made(deciding):
    order = []
    observer = observed(torch.ones(3), torch.ones(5))
    now, then = (
        replace(brief(name), policy=Foreseen(order).of(policies.get(name)))
        for name in ("bucket", "priority")
    )
    plan = policies.get("bucket").plan(planning._request(now, observer.members, seen(observer)))
    echo = Echo(deciding=deciding, shared=None if deciding else plan.to_json())
    assign(echo, now, observer, lambda _: seen(observer), None, then)
    expected = planning._request(then, observer.members, seen(observer))
    assert order == ([("priority", expected), "planned"] if deciding else [])


def seen(observer):
    return observer.profile(observer.members, None)
