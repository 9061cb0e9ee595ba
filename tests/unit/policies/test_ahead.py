"""Plans that another process makes: the same ones, and nothing is lost where it fails."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from deft_horovod import policies
from deft_horovod.policies import ahead
from deft_horovod.policies.ahead import PlansAhead
from deft_horovod.policies.memory import Memory, foresee
from deft_horovod.solver.problem import Limits
from tests.unit.support.models import request as model
from tests.unit.support.models import with_formats

pytestmark = pytest.mark.timeout(120)

ROUNDED = Limits(max_delay=0, max_merge=1, formats=("f16", "int8"))
LATE = Limits(max_delay=1, max_merge=1)


@pytest.fixture
def plans():
    made = PlansAhead()
    yield made
    made.close()


@pytest.fixture
def started(monkeypatch):
    """The processes that were started."""
    found = []
    begin = subprocess.Popen

    def start(*args, **kwargs):
        found.append(begin(*args, **kwargs))
        return found[-1]

    monkeypatch.setattr(ahead.subprocess, "Popen", start)
    return found


def wait_until(true):
    end_s = time.monotonic() + 30.0
    while not true():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_another_process_makes_the_same_plan(plans):
    request = replace(with_formats(model("resnet101", 2.0), "fast"), limits=ROUNDED)
    plans.ask("fewest_bytes", request)
    assert plans.take("fewest_bytes", request) == policies.get("fewest_bytes").plan(request)


def test_each_question_is_answered_once_and_in_any_order(plans, started):
    request = model("vgg19", 1.0)
    late = replace(request, limits=LATE)
    for asked in (request, late, request):
        plans.ask("least_stale", asked)
    assert len(started) == 2
    assert plans.take("least_stale", late) == policies.get("least_stale").plan(late)
    assert plans.take("least_stale", request) == policies.get("least_stale").plan(request)
    assert plans.take("least_stale", request) is None


def test_what_was_not_asked_is_not_answered(plans):
    plans.ask("bucket", model("vgg19", 1.0))
    assert plans.take("priority", model("vgg19", 1.0)) is None
    assert plans.take("bucket", model("vgg19", 2.0)) is None


def test_a_process_that_dies_answers_nothing(plans, started):
    plans.ask("bucket", model("vgg19", 1.0))
    started[0].kill()
    assert plans.take("bucket", model("vgg19", 1.0)) is None


@pytest.mark.parametrize("said", ["", "print('no plan')", "print('{}')", "raise SystemExit(3)"])
def test_a_process_that_says_something_else_answers_nothing(plans, monkeypatch, said):
    monkeypatch.setattr(ahead, "_START", f"import sys; sys.stdin.buffer.read(); {said}")
    plans.ask("bucket", model("vgg19", 1.0))
    assert plans.take("bucket", model("vgg19", 1.0)) is None


def test_a_process_that_never_answers_is_not_waited_for_for_ever(plans, monkeypatch, started):
    monkeypatch.setattr(ahead, "_START", "import time; time.sleep(100)")
    monkeypatch.setattr(ahead, "_LIMIT_S", 0.2)
    plans.ask("bucket", model("vgg19", 1.0))
    assert plans.take("bucket", model("vgg19", 1.0)) is None
    assert started[0].wait(10) != 0


@pytest.mark.parametrize(("name", "value"), [("executable", "/nowhere/python"), ("frozen", True)])
def test_where_no_process_can_be_started_nothing_is_asked(plans, monkeypatch, name, value):
    monkeypatch.setattr(sys, name, value, raising=False)
    plans.ask("bucket", model("vgg19", 1.0))
    assert plans.take("bucket", model("vgg19", 1.0)) is None


def test_no_process_outlives_its_use(started):
    plans = PlansAhead()
    plans.ask("least_stale", model("vgg19", 1.0))
    plans.close()
    (process,) = started
    assert process.wait(10) != 0


def test_it_gives_way_to_everything_else(plans, started, monkeypatch):
    monkeypatch.setattr(ahead, "_START", ahead._START + "; import time; time.sleep(60)")
    mine = os.sched_getscheduler(0)
    plans.ask("bucket", model("vgg19", 1.0))
    (process,) = started
    wait_until(lambda: os.sched_getscheduler(process.pid) == os.SCHED_IDLE)
    assert os.sched_getscheduler(0) == mine


def test_a_policy_that_remembers_takes_what_was_foreseen(monkeypatch):
    memory, request = Memory(), model("vgg19", 2.0)
    expected = policies.get("least_stale").plan(request)
    asked = memory.of(policies.get("least_stale"))
    foresee(asked, request)
    # Whoever plans here now would fail.
    monkeypatch.setattr("deft_horovod.policies.least_stale.solve", None)
    assert asked.plan(request) == expected
    foresee(asked, request)  # known by now
    assert memory.ahead.take("least_stale", request) is None
    foresee(policies.get("bucket"), request)  # remembers nothing, so nothing is asked


def test_what_fails_elsewhere_is_planned_here(monkeypatch):
    monkeypatch.setattr(ahead, "_START", "raise SystemExit(1)")
    memory, request = Memory(), model("vgg19", 1.0)
    asked = memory.of(policies.get("priority"))
    foresee(asked, request)
    assert asked.plan(request) == policies.get("priority").plan(request)
