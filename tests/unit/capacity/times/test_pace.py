"""Step times: with our plans, and with stock Horovod."""

import pytest

from deft_horovod.capacity.times.pace import Pace, Paces, Site
from deft_horovod.errors import NotSupportedError
from deft_horovod.simulate.cluster import Cluster, on_cluster
from tests.unit.support.example import profile


def test_one_rank_computes_alone():
    assert Paces(profile(), "exact").at(Site(1)) == Pace(195_000, 195_000, 195_000, "stock")


def test_a_slow_link_is_worth_a_plan():
    pace = Paces(profile(), "exact").at(Site(4, rate_bits_per_s=2.5e9))
    assert pace.policy == "least_stale"
    assert pace.compute_us <= pace.ours_us < pace.stock_us


def test_a_fast_link_is_left_to_stock():
    pace = Paces(profile(), "exact").at(Site(4, rate_bits_per_s=1e12, latency_us=0.0))
    assert pace.policy == "stock"
    assert pace.ours_us == pace.stock_us


def test_a_faster_machine_computes_less_and_sends_as_long():
    slow, fast = (Paces(profile(), "exact").at(Site(8, speed, 2.5e9)) for speed in (1.0, 2.0))
    assert fast.compute_us == pytest.approx(slow.compute_us / 2)
    assert slow.stock_us / 2 < fast.stock_us < slow.stock_us


def test_measured_links_count_where_no_rate_is_given():
    paces = Paces(profile(), "exact")
    assert paces.at(Site(4)).stock_us > paces.at(Site(1)).stock_us
    assert on_cluster(profile(), Cluster(4)).links
    with pytest.raises(NotSupportedError, match="not known"):
        Paces(profile(links=()), "exact").at(Site(4))


def test_what_was_asked_for_is_remembered():
    paces = Paces(profile(), "exact")
    site = Site(4, rate_bits_per_s=2.5e9)
    assert paces.at(site) is paces.at(site)
