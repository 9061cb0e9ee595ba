"""Steps on a clock whose moments are plain numbers."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.runtime.measure.module_timer import Calls
from deft_horovod.runtime.measure.step_record import Pass, StepRecord, backward_began, step_times
from deft_horovod.runtime.measure.timestamps import HostClock

NO_CALLS = Calls([], [], [], [], False)


def collected(ready_us, began_us=0):
    order = sorted((i for i, us in enumerate(ready_us) if us >= 0), key=lambda i: ready_us[i])
    return SimpleNamespace(ready_us=ready_us, began_us=began_us, order=order)


def record(**changes):
    """Update until 110, forward until 300, backward until 450, waiting until 500."""
    fields = {
        "began": 100,
        "updated": 110,
        "backward": Pass(300, 300),
        "asked": 450,
        "done": 500,
        "collected": collected([40.0, 0.0, -1.0], 350),
        "gradients": {},
        "calls": NO_CALLS,
        "timed_modules": None,
    }
    return StepRecord(**{**fields, **changes})


def test_stages_follow_each_other():
    times = step_times(record(), HostClock())
    assert times.stages == {"optimizer": 10, "forward": 190, "backward": 150, "step": 400}
    assert times.order == (1, 0)
    np.testing.assert_array_equal(times.ready_us, [90.0, 50.0, np.nan])
    assert times.modules is None


@given(st.lists(st.integers(0, 10**9), min_size=5, max_size=5))
def test_stages_and_waiting_are_the_step(moments):
    began, updated, backward, asked, done = sorted(moments)
    changes = {"began": began, "updated": updated, "asked": asked, "done": done}
    changes |= {"backward": Pass(backward, backward), "collected": collected([0.0], backward)}
    stages = step_times(record(**changes), HostClock()).stages
    compute = stages["optimizer"] + stages["forward"] + stages["backward"]
    assert compute + (done - asked) == stages["step"]


def test_without_an_update_forward_begins_with_the_step():
    stages = step_times(record(updated=None), HostClock()).stages
    assert (stages["optimizer"], stages["forward"]) == (0, 200)


def test_gradients_of_a_device_count_with_its_own_moments():
    times = step_times(record(gradients={0: 420, 2: 430}), HostClock())
    np.testing.assert_array_equal(times.ready_us, [120.0, 50.0, np.nan])


def test_no_gradient_is_ready_after_backward():
    times = step_times(record(collected=collected([1000.0], 350)), HostClock())
    assert times.ready_us.tolist() == [150.0]


def test_calls_of_a_module_add_up_without_those_inside_them():
    calls = Calls(
        modules=[0, 1, 1, 2],
        entered=[120, 130, 150, 210],
        left=[200, 140, 170, 220],
        outer=[-1, 0, 0, -1],
        evaluated=True,
    )
    times = step_times(record(calls=calls, timed_modules=4), HostClock())
    np.testing.assert_array_equal(times.modules.own_us, [50.0, 30.0, 10.0, np.nan])
    np.testing.assert_array_equal(times.modules.first_call_us, [10.0, 20.0, 100.0, np.nan])
    assert times.evaluated


def test_a_call_that_never_returned_says_nothing():
    calls = Calls([0, 0], [120, 140], [130, None], [-1, -1], False)
    times = step_times(record(calls=calls, timed_modules=1), HostClock())
    assert np.isnan(times.modules.own_us).all()
    assert np.isnan(times.modules.first_call_us).all()


PASSES = [Pass(100, "penalty"), Pass(200, "first"), Pass(300, "last")]


@pytest.mark.parametrize(
    ("ready_us", "began_us", "expected"),
    [
        ([0.0, 50.0], 250, "first"),
        ([90.0, 60.0], 250, "last"),  # an earlier pass left the window's first gradient at 250
        ([-1.0, 0.0], 300, "last"),
        ([-1.0, -1.0], 250, None),
        ([0.0], 50, None),
    ],
)
def test_backward_is_the_pass_of_the_first_gradient_that_is_ready(ready_us, began_us, expected):
    found = backward_began(PASSES, collected(ready_us, began_us))
    assert (found and found.moment) == expected
