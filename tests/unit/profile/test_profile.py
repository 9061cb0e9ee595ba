import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deft_horovod.errors import PlanError
from deft_horovod.profile import LinkCost, Profile
from tests.unit.support.planning import profiles


def test_link_cost_is_linear():
    assert LinkCost(alpha_us=5.0, beta_us_per_byte=0.5).time_us(10) == 10.0


@given(st.integers(0, 300))
def test_the_assumed_profile_is_consistent(count):
    profile = Profile.assumed(count)
    assert profile.link is None
    assert profile.ready_order == tuple(range(count))[::-1]
    assert list(profile.first_use_us) == sorted(profile.first_use_us)
    times = [profile.ready_us[index] for index in profile.ready_order]
    assert times == sorted(times)
    assert all(0 < time <= profile.backward_us for time in times)
    assert all(0 <= time < profile.forward_us for time in profile.first_use_us)


@given(st.data())
def test_json_round_trip(data):
    profile = data.draw(profiles(data.draw(st.integers(0, 20))))
    assert Profile.from_json(profile.to_json()) == profile


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ready_order": (0, 0)}, "'ready_order'"),
        ({"ready_order": (0, 2)}, "'ready_order'"),
        ({"ready_us": (1.0,)}, "'ready_us'"),
        ({"first_use_us": (1.0, None, 2.0)}, "'first_use_us'"),
        ({"backward_us": float("nan")}, "'backward_us'"),
        ({"forward_us": float("inf")}, "'forward_us'"),
        ({"ready_us": (-1.0, 0.0)}, r"'ready_us\.0'"),
        ({"version": 1}, "'version'"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    good = Profile.assumed(2)
    with pytest.raises(PlanError, match=message):
        Profile(**{**good.model_dump(), **change})


COSTS = st.builds(
    LinkCost,
    alpha_us=st.floats(0, 1e4),
    beta_us_per_byte=st.floats(0, 1.0),
    cycle_us=st.one_of(st.just(0.0), st.floats(0, 1e4)),
)


@given(COSTS, st.integers(0, 10**8), st.integers(0, 10**8), st.floats(1, 100))
def test_larger_messages_and_fewer_in_flight_take_no_less(cost, one, other, in_flight):
    small, large = sorted((one, other))
    tolerance = 1 + 1e-9
    assert cost.time_us(small) <= cost.time_us(large) * tolerance
    assert cost.with_in_flight(in_flight).time_us(small) <= (
        cost.with_in_flight(1).time_us(small) * tolerance
    )


@given(COSTS, st.integers(0, 10**8), st.floats(1, 100))
def test_no_message_takes_less_than_its_bytes_or_its_share_of_a_cycle(cost, size, in_flight):
    time_us = cost.with_in_flight(in_flight).time_us(size)
    assert time_us >= cost.beta_us_per_byte * size
    assert time_us >= cost.cycle_us / in_flight
    assert time_us <= max(
        cost.alpha_us + cost.beta_us_per_byte * size, cost.cycle_us / in_flight
    ) * (1 + 1e-9)


@given(COSTS, st.integers(2, 64))
def test_a_start_up_is_as_long_as_the_bytes_that_stand_for_it_take(cost, ranks):
    assume(not 0.0 < cost.beta_us_per_byte < 1e-12)  # floats get coarse there
    sent = 2 * (ranks - 1) / ranks  # by each rank, of a byte of an all-reduce
    size = cost.start_up_bytes(ranks)
    if size == 1 << 40:
        assert cost.beta_us_per_byte * size / sent <= cost.time_us(0)
    else:
        us_per_byte = cost.beta_us_per_byte / sent
        assert size * us_per_byte <= cost.time_us(0) * (1 + 1e-9)
        assert (size + 1) * us_per_byte >= cost.time_us(0) * (1 - 1e-9)


def test_without_a_known_cycle_a_message_takes_what_the_line_says():
    cost = LinkCost(alpha_us=200.0, beta_us_per_byte=0.01)
    assert cost.time_us(1000) == 210.0
    assert cost.with_in_flight(8).time_us(1000) == 210.0


def test_what_the_codec_takes_need_not_be_known():
    """Files of before say nothing of it."""
    cost = {"alpha_us": 900.0, "beta_us_per_byte": 0.001}
    fields = json.loads(Profile.assumed(1).to_json())
    link = {"name": "horovod", "cost": cost, "formats": [{"format": "int8", "cost": cost}]}
    profile = Profile.from_json(json.dumps({**fields, "links": [link]}))
    (one,) = profile.links[0].formats
    assert (one.encode_us_per_byte, one.decode_us_per_byte) == (None, None)
    known = one.model_copy(update={"encode_us_per_byte": 8e-5, "decode_us_per_byte": 5e-5})
    links = (profile.links[0].model_copy(update={"formats": (known,)}),)
    whole = profile.model_copy(update={"links": links})
    assert Profile.from_json(whole.to_json()) == whole
