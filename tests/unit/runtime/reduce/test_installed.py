"""The parts that are at work are treated as one, whichever of them are there."""

from __future__ import annotations

import pytest

from deft_horovod.runtime.measure.step_clock import StepClock
from deft_horovod.runtime.reduce.installed import Installed


class Part:
    """Notes what it is asked to do."""

    def __init__(self, calls, name):
        self.calls, self.name = calls, name
        self.reducer, self.dropped, self.late = self, 3, True

    def __getattr__(self, what):
        def call(*arguments, **named):
            self.calls.append((self.name, what))
            return ["held"] if what == "finish" and arguments == (True,) else []

        return call


@pytest.fixture
def calls():
    return []


def with_parts(calls, *names):
    return Installed(**{name: Part(calls, name) for name in names})


def test_without_parts_nothing_happens():
    installed = Installed()
    assert installed.late is None
    assert not installed.failed
    assert installed.hold(["due"], []) == ["due"]
    assert installed.finish(StepClock(), hold_gated=True) == []
    installed.hold([], [])
    installed.updated()
    installed.open_gates()
    installed.forget_gradients(to_zero=True)
    installed.set_passes_per_step(2)
    installed.reset_stock()
    assert installed.close_plan() == 0
    installed.close_stock()


def test_a_step_ends_for_all_parts_and_gates_watch_after_the_updates(calls):
    installed = with_parts(calls, "planned", "gates", "stock")
    assert installed.finish(StepClock(), hold_gated=True) == ["held"]
    assert installed.hold(["held"], []) == []
    installed.updated()
    assert calls == [
        ("planned", "finish"),
        ("stock", "finish"),
        ("stock", "reset"),
        ("gates", "hold"),
        ("planned", "updated"),
        ("gates", "watch"),
    ]


def test_without_gates_nothing_is_held(calls):
    assert with_parts(calls, "planned").finish(StepClock(), hold_gated=True) == []


def test_what_is_closed_tells_what_it_dropped(calls):
    installed = with_parts(calls, "planned", "gates", "stock")
    assert installed.close_plan() == 3
    installed.close_stock()
    assert calls == [("gates", "close"), ("planned", "close"), ("stock", "detach")]
