"""Events of a trace: slices that nest, arrows with a beginning and an end."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.trace import FIRST_LINK, Line, MessageSpan, StepSpan, lines_of

LINE = Line(rank=3, optimizer=1)
moments = st.floats(0.0, 1e9)


@given(moments, st.none() | moments, st.none() | moments, moments, moments)
def test_the_stages_of_a_step_fill_it_whatever_the_clocks_say(
    began, updated, backward, asked, done
):
    events = StepSpan(7, began, updated, backward, asked, done).events(LINE)
    step, *rest = events
    assert step["name"] == "step 7"
    stages = [e for e in rest if e["cat"] == "stage"]
    windows = [e for e in rest if e["cat"] == "window"]
    assert [e["name"] for e in windows] == ["forward of 7", "backward of 7"]
    for parts in (stages, windows):
        at = step["ts"]
        for part in parts:
            assert part["ts"] == pytest.approx(at)
            at = part["ts"] + part["dur"]
        assert at == pytest.approx(step["ts"] + step["dur"])
    assert {e["tid"] for e in stages} <= {step["tid"]}
    assert all(e["pid"] == 3 for e in events)


def message(**changes):
    fields = {
        "bucket": 2,
        "link": 1,
        "first_step": 4,
        "last_step": 5,
        "apply_step": 6,
        "gated": False,
        "bytes": 100,
        "ready_us": 10.0,
        "sent_us": 20.0,
        "starts_us": 30.0,
        "done_us": 40.0,
    }
    return MessageSpan(**{**fields, **changes})


def test_a_message_is_drawn_on_its_link_with_an_arrow_from_the_gradient():
    wire, begin, end, ready, sent = message().events(LINE, 9, ["w", "b"])
    assert wire["name"] == "bucket 2 of steps 4-5"
    assert (wire["ts"], wire["dur"]) == (30.0, 10.0)
    assert wire["tid"] == sent["tid"] == LINE.track(FIRST_LINK + 1)["tid"]
    assert wire["args"]["tensors"] == ["w", "b"]
    assert wire["args"]["waited for the link, us"] == 20.0
    assert (begin["ts"], end["ts"]) == (10.0, 40.0)
    assert (ready["ph"], ready["ts"], ready["tid"]) == ("s", 10.0, LINE.track(0)["tid"])
    assert ready["id"] == sent["id"] == begin["id"]


@pytest.mark.parametrize(
    ("gated", "boundary_us", "at_us"), [(False, 50.0, 50.0), (True, 35.0, 40.0), (True, 50.0, 50.0)]
)
def test_the_arrow_ends_in_the_update_and_not_before_the_message(gated, boundary_us, at_us):
    end = message(gated=gated).applied(LINE, 9, boundary_us)
    assert (end["ph"], end["bp"]) == ("f", "e")
    assert at_us < end["ts"] < at_us + 1.0
    assert end["id"] == message().events(LINE, 9, [])[3]["id"]


def test_of_many_tensors_some_are_named():
    wire = message(last_step=4).events(LINE, 1, [f"p{i}" for i in range(20)])[0]
    assert wire["name"] == "bucket 2 of step 4"
    assert wire["args"]["tensors"][-2:] == ["p7", "and 12 more"]


def test_tracks_of_optimizers_and_links_are_apart_and_named():
    heads = [*Line(0, 0).heads(["a", "b"]), *Line(0, 1).heads(["a"])]
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in heads if e["name"] == "thread_name"}
    assert len(named) == 4 + 3
    assert len(set(named.values())) == 7


def test_a_file_without_its_end_is_the_events_one_by_one():
    events = message().events(LINE, 1, ["a"])
    text = "[\n" + lines_of(events)
    assert json.loads(text.rstrip(",\n") + "]") == events
