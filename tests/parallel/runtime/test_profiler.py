"""Profiles of real ranks: the same on all, true to what the layers and links really take."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from deft_horovod.profile import LinkProfile, Profile
from tests.parallel.cases import Job, case_names, run_program

PROGRAM = "runtime/profiling.py"
LIMIT_S = 180

pytestmark = [pytest.mark.alone, pytest.mark.timeout(LIMIT_S + 20)]


@functools.cache
def _job() -> Job:
    return run_program(PROGRAM, 2, timeout_s=LIMIT_S)


def _profile(case: str) -> Profile:
    """What both ranks have."""
    one, other = _job().values(case)
    assert one == other
    return Profile.from_json(one)


def _within(expected_us: float, share: float = 0.15) -> Any:
    return pytest.approx(expected_us, rel=share)


@pytest.mark.parametrize("case", case_names(PROGRAM))
def test_case(case: str) -> None:
    _job().values(case)


def test_texts_are_collected_by_rank() -> None:
    for everyone in _job().values("texts_are_collected_by_rank"):
        assert everyone == ["rank 0", "ééérank 1"]


def test_times_are_those_of_the_slow_rank() -> None:
    profile = _profile("layers_take_the_time_that_they_take")
    assert [m.forward_us for m in profile.modules] == [
        _within(50_000),
        _within(25_000),
        _within(37_500),
    ]
    assert profile.forward_us == _within(112_500)
    assert profile.backward_us == _within(150_000)
    assert profile.ready_order == (2, 1, 0)
    assert [profile.ready_us[i] for i in (2, 1, 0)] == [
        _within(50_000),
        _within(125_000),
        _within(150_000),
    ]
    assert profile.first_use_us[2] == _within(75_000)
    assert (profile.steps, profile.size) == (6, 2)


def test_the_slow_rank_is_named() -> None:
    spreads = {s.stage: s for s in _profile("layers_take_the_time_that_they_take").spreads}
    for stage, fast_us, slow_us in (("forward", 90_000, 112_500), ("backward", 120_000, 150_000)):
        assert spreads[stage].slowest_rank == 1
        assert spreads[stage].fastest_rank_us == _within(fast_us)
        assert spreads[stage].p10_us <= 1.15 * slow_us
        assert spreads[stage].p90_us >= slow_us


def test_the_lowest_rank_s_order_wins() -> None:
    profile = _profile("another_order_on_another_rank")
    assert profile.ready_order == (2, 1, 0)
    # On rank 1 parameter 2 is ready last, so nothing is ready before on all ranks.
    assert list(profile.ready_us) == [_within(30_000)] * 3


def test_a_module_that_is_called_twice_takes_both_calls() -> None:
    profile = _profile("a_module_that_is_called_twice")
    assert [m.forward_us for m in profile.modules] == [_within(40_000), _within(10_000)]
    assert profile.ready_order == (1, 0)
    assert profile.ready_us[0] == _within(50_000)


def test_a_compiled_model_is_one_module() -> None:
    profile = _profile("a_compiled_model")
    assert [(m.type, m.parameters) for m in profile.modules] == [
        ("OptimizedModule", (0, 1, 2, 3, 4, 5))
    ]
    assert 0 < profile.modules[0].forward_us <= profile.forward_us
    assert profile.backward_us > 0
    assert profile.compute_us <= profile.step_us


def _sane(link: LinkProfile) -> None:
    assert len(link.samples) >= 8
    sizes = [sample.size_bytes for sample in link.samples]
    assert sizes == sorted(sizes)
    assert sizes[0] == 16
    assert 10 < link.cost.alpha_us < 50_000
    assert link.cost.beta_us_per_byte < 0.1  # loopback does 10 MB/s at least
    assert link.residual < 10.0  # cores are shared with whatever else runs here


def test_a_link_is_measured_the_same_on_both_ranks_and_in_time() -> None:
    one, other = _job().values("one_link")
    assert one["link"] == other["link"]
    assert one["took_s"] < 5
    link = LinkProfile(**one["link"])
    _sane(link)
    assert link.busy_cost is None
    assert link.samples[-1].size_bytes >= 64 << 10


def test_several_links_are_also_measured_while_all_are_busy() -> None:
    one, other = _job().values("two_links")
    assert one == other
    assert [fields["name"] for fields in one] == ["one", "other"]
    for link in (LinkProfile(**fields) for fields in one):
        _sane(link)
        assert link.busy_cost is not None
        assert link.busy_cost.time_us(1 << 20) > 0


def test_a_link_can_be_measured_again() -> None:
    for profiles in _job().values("a_link_again_under_the_same_names"):
        for fields in profiles:
            assert len(LinkProfile(**fields).samples) >= 8
