"""Ticks of axes."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deft_horovod.report.basics.axis import log_ticks, ms_places, ticks, x_ticks


@given(st.floats(1e-6, 1e12), st.integers(2, 8))
@example(249999999750.0, 4)
def test_ticks_are_few_even_and_inside(end, most):
    found = ticks(end, most)
    assert found[0] == 0.0
    assert 2 <= len(found) <= most + 1
    assert found[-1] <= end * (1 + 1e-6)
    steps = {round((b - a) / found[1], 6) for a, b in pairwise(found)}
    assert steps == {1.0}


@pytest.mark.parametrize("end", [0.0, -1.0, float("inf"), float("nan")])
def test_without_a_way_to_go_there_is_one_tick(end):
    assert ticks(end) == [0.0]


def test_ticks_are_round():
    assert ticks(536.0) == [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]
    assert ticks(700.0) == [0.0, 200.0, 400.0, 600.0]
    assert ticks(1.0) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


@given(st.floats(1e-3, 1e9), st.floats(2.6, 1e9))
def test_log_ticks_are_few_and_inside(low, ratio):
    found = log_ticks(low, low * ratio)
    assert 1 <= len(found) <= 6
    assert all(low <= value <= low * ratio for value in found)
    assert found == sorted(found)


def test_log_ticks_are_powers_of_ten_where_there_are_enough():
    assert log_ticks(5.0, 2_000.0) == [10.0, 100.0, 1000.0]
    assert log_ticks(30.0, 90.0) == [50.0]


def test_the_first_label_has_the_unit():
    assert ms_places(700_000.0) == [
        (0.0, "0 ms"),
        (pytest.approx(200 / 700), "200"),
        (pytest.approx(400 / 700), "400"),
        (pytest.approx(600 / 700), "600"),
    ]
    assert ms_places(0.0) == [(0.0, "0 ms")]


def test_labels_at_the_edges_stay_inside():
    drawn = x_ticks([(0.0, "a"), (0.5, "b"), (1.0, "c")], 10, 20)
    anchors = [text.get("text-anchor") for text in drawn.iter("text")]
    assert anchors == ["start", "middle", "end"]
    assert len(list(drawn.iter("line"))) == 3
