import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.errors import ConfigError, NotSupportedError
from deft_horovod.profile import FormatCost, LinkCost, LinkProfile, Profile
from deft_horovod.simulate.cluster import Cluster, on_cluster, ring_volume
from deft_horovod.solver.messages.blocks import ASSUMED_COST

COST = LinkCost(alpha_us=1_000.0, beta_us_per_byte=0.01)
BUSY = LinkCost(alpha_us=1_500.0, beta_us_per_byte=0.02)


ALONE = (LinkProfile(name="horovod", cost=COST),)


def profile(size=4, links=ALONE):
    assumed = Profile.assumed(3)
    return assumed.model_copy(update={"size": size, "links": links, "step_us": 99.0})


@pytest.mark.parametrize("ranks", [-1, 0, 1, 1_000_001])
def test_one_rank_is_no_cluster(ranks):
    with pytest.raises(ConfigError, match="one rank alone sends nothing"):
        Cluster(ranks)


def test_a_ring_sends_everything_twice_but_for_the_own_share():
    assert ring_volume(2) == 1.0
    assert ring_volume(4) == 1.5
    assert ring_volume(1_000_000) == pytest.approx(2.0, abs=1e-5)


def test_the_cluster_of_the_profile_is_the_profile():
    there = on_cluster(profile(), Cluster(4))
    assert there.link == COST
    assert there.step_us == 0.0  # that was measured elsewhere


def test_measured_links_are_scaled_by_the_ring():
    both = (
        LinkProfile(name="horovod", cost=COST, busy_cost=BUSY),
        LinkProfile(name="second", cost=BUSY),
    )
    there = on_cluster(profile(2, both), Cluster(4, latency_us=5.0))
    assert [link.name for link in there.links] == ["horovod", "second"]
    assert there.links[0].cost == LinkCost(alpha_us=1_020.0, beta_us_per_byte=0.015)
    assert there.links[0].busy_cost == LinkCost(alpha_us=1_520.0, beta_us_per_byte=0.03)
    assert there.links[1].busy_cost is None
    assert there.size == 4


def test_a_rate_replaces_the_links():
    both = (LinkProfile(name="horovod", cost=COST), LinkProfile(name="second", cost=BUSY))
    there = on_cluster(profile(2, both), Cluster(8, 1e9, 0.0))
    assert [link.name for link in there.links] == ["horovod"]
    assert there.link == LinkCost(alpha_us=1_000.0, beta_us_per_byte=1.75 * 0.008)


def test_what_was_never_measured_is_taken_for_granted():
    alone = profile(1, ())
    there = on_cluster(alone, Cluster(3, 1e9, 10.0))
    assert there.link is not None
    assert there.link.alpha_us == ASSUMED_COST.alpha_us + 20.0


@pytest.mark.parametrize("alone", [profile(4, ()), profile(1)])
def test_without_a_measured_link_a_rate_has_to_be_given(alone):
    with pytest.raises(NotSupportedError, match="--link 10gbit"):
        on_cluster(alone, Cluster(16))


@given(
    measured=st.integers(2, 2_000),
    ranks=st.integers(2, 2_000),
    alpha=st.floats(0.0, 1e5),
    latency=st.floats(0.0, 1e4),
)
def test_fewer_ranks_never_cost_more(measured, ranks, alpha, latency):
    cost = LinkCost(alpha_us=alpha, beta_us_per_byte=0.01)
    here = profile(measured, Profile.link_of(cost))
    there = on_cluster(here, Cluster(ranks, latency_us=latency)).link
    more = on_cluster(here, Cluster(ranks + 1, latency_us=latency)).link
    assert there is not None
    assert more is not None
    assert 0.0 <= there.alpha_us <= more.alpha_us
    assert 0.0 < there.beta_us_per_byte < more.beta_us_per_byte <= 0.02 + 1e-12
    assert (there.alpha_us >= alpha) == (ranks >= measured) or latency * alpha < 1e-6


def test_formats_take_fewer_bytes_on_any_link_and_their_codec_stays_as_slow():
    quick = FormatCost(format="int8", cost=LinkCost(alpha_us=1_200.0, beta_us_per_byte=0.004))
    link = LinkProfile(name="horovod", cost=COST, formats=(quick,))
    (on_more,) = on_cluster(profile(2, (link,)), Cluster(4, latency_us=0.0)).links
    assert on_more.cost_in("int8").beta_us_per_byte == pytest.approx(0.006)
    (tenfold,) = on_cluster(profile(2, (link,)), Cluster(2, 8e9, 0.0)).links
    share = (1 + 1 / 64) / 4  # a byte for each value, and a scale for 256
    codec = 0.004 - share * COST.beta_us_per_byte
    assert tenfold.cost_in("int8").beta_us_per_byte == pytest.approx(share * 0.001 + codec)
    assert tenfold.cost_in("int4") is None
