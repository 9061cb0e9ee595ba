"""A tracer on one rank, with the real executor."""

import horovod.torch as stock
import pytest

from deft_horovod.base.trace import Line
from deft_horovod.runtime.ranks.clock_offset import ClockOffset
from deft_horovod.runtime.trace.tracer import Tracer
from tests.unit.runtime.reduce.test_planned import reducer
from tests.unit.support.boundaries import boundary

OFFSET_US = 5e9


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


def traced(steps, limit=100):
    events = []
    tracer = Tracer(events.extend, Line(0), ClockOffset(OFFSET_US, 3.0), limit)
    planned = reducer("bucket", f"unit.traced.{steps}.{limit}")
    for step in range(1, steps + 1):
        for member in planned.members:
            member.tensor.grad = member.tensor.detach().clone()
        tracer.begin_boundary()
        planned.finish(hold_gated=False)
        tracer.end_boundary(boundary(step=step, planned=planned))
        tracer.updated()
    return events


def test_messages_carry_the_steps_of_the_job_and_end_in_their_update():
    events = traced(4)
    messages = [e for e in events if e.get("cat") == "message" and e["ph"] == "X"]
    assert sorted({tuple(e["args"]["steps"]) for e in messages}) == [(n, n) for n in range(1, 5)]
    ends = [e["id"] for e in events if e["ph"] == "f"]
    assert sorted(ends) == sorted(e["id"] for e in events if e["ph"] == "s")
    steps = [e["name"] for e in events if e.get("cat") == "step"]
    assert steps == ["step 2", "step 3", "step 4"]
    assert all(e["ts"] > OFFSET_US for e in events if "ts" in e)
    told = next(e for e in events if e["name"] == "deft_clock")
    assert told["args"] == {"offset_us": OFFSET_US, "error_us": 3.0}


def test_it_stops_when_it_has_seen_enough():
    steps = [e["name"] for e in traced(6, limit=3) if e.get("cat") == "step"]
    assert steps == ["step 2", "step 3"]


def test_whoever_else_reads_the_messages_gets_them_all():
    planned = reducer("bucket", "unit.traced.twice")
    planned.finish(hold_gated=False)
    looked_at = planned.look_at_records()
    assert looked_at
    assert planned.look_at_records() == []
    assert len(planned.take_records()) == len(looked_at)
    assert planned.take_records() == []
