import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.parameter import WIRE_ITEM_BYTES
from deft_horovod.plan.contents import contents
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.solver.messages.blocks import (
    ALPHA_SHARE,
    COARSE_SHARES,
    FINE_SHARES,
    MAX_BUCKETS,
    WINDOW_SHARE,
    block_up,
    distinct_blockings,
    sizes,
)
from tests.unit.support.planning import (
    assert_carried_once,
    make_parameters,
    many_parameters,
    parameters,
    profiles,
)

COSTS = st.builds(
    LinkCost,
    alpha_us=st.sampled_from([0.0, 1e-3, 30.0, 1500.0, 1e6]),
    beta_us_per_byte=st.sampled_from([0.0, 1e-9, 1e-3, 0.024, 10.0]),
)


def slot_bytes(parameter):
    return 16 + -(-parameter.bytes // 16) * 16


def even_profile(count, cost, *, window_us=1000.0, gateable=True):
    """Gradients become ready one after another, the last parameter's first."""
    assumed = Profile.assumed(count)
    scale = window_us / count
    return assumed.model_copy(
        update={
            "ready_us": tuple(t * scale for t in assumed.ready_us),
            "first_use_us": tuple(i * scale if gateable else None for i in range(count)),
            "forward_us": window_us,
            "backward_us": 2 * window_us,
            "links": Profile.link_of(cost),
        }
    )


def rules_for(members, profile):
    total = sum(slot_bytes(member) for member in members)
    return sizes(total, profile, alpha_share=ALPHA_SHARE, window_share=WINDOW_SHARE)


def check_blocking(members, profile, blocking):
    assert_carried_once(members, blocking.layout.arenas, blocking.layout.slots, blocking.buckets)
    inside = contents(blocking.layout.slots, blocking.buckets)
    assert sorted(i for b in blocking.blocks for i in b.parameters) == list(range(len(members)))
    assert [i for b in blocking.blocks for i in b.buckets] == list(range(len(blocking.buckets)))
    ready = [min(time, profile.backward_us) for time in profile.ready_us]
    for block in blocking.blocks:
        assert len(block.parameters) == 1 or len(block.buckets) == 1
        for bucket in block.buckets:
            assert set(inside[bucket]) == set(block.parameters)
        assert block.ready_us == max(ready[i] for i in block.parameters)
        needs = [profile.first_use_us[i] for i in block.parameters]
        if block.need_us is None:
            assert set(needs) == {None}
        else:
            assert block.need_us == min(needs)
        assert len({blocking.layout.slots[i].arena for i in block.parameters}) == 1
        pieces = [blocking.bucket_bytes(bucket) for bucket in block.buckets]
        assert max(pieces) - min(pieces) <= 16
    assert [b.ready_us for b in blocking.blocks] == sorted(b.ready_us for b in blocking.blocks)


def check_sizes(members, profile, blocking):
    rules = rules_for(members, profile)
    kinds = {
        (m.dtype, m.wire, m.device, use is None)
        for m, use in zip(members, profile.first_use_us, strict=True)
    }
    assert len(blocking.buckets) <= MAX_BUCKETS + len(kinds)
    assert rules.least_bytes <= rules.aim_bytes <= rules.cap_bytes
    for index in range(len(blocking.buckets)):
        assert blocking.bucket_bytes(index) <= rules.cap_bytes
    for block in blocking.blocks:
        if len(block.buckets) > 1:  # nothing is cut finer than necessary
            smallest = min(blocking.bucket_bytes(bucket) for bucket in block.buckets)
            assert smallest + 16 > min(rules.aim_bytes, rules.cap_bytes / 2)
    cost = profile.link
    if cost is not None:
        window_us = WINDOW_SHARE * min(profile.forward_us, profile.backward_us)
        slack = 1 + 1e-9
        for index in range(len(blocking.buckets)):
            size = blocking.bucket_bytes(index)
            start_up_matters = cost.alpha_us * slack >= 0.5 * cost.time_us(size)
            finest = size <= max(16, 2 * sum(map(slot_bytes, members)) / MAX_BUCKETS)
            assert cost.time_us(size) <= window_us * slack or start_up_matters or finest


@given(st.data())
def test_every_rule_holds(data):
    members = data.draw(parameters())
    profile = data.draw(profiles(len(members)))
    blocking = block_up(members, profile)
    assert blocking == block_up(members, profile)
    check_blocking(members, profile, blocking)
    check_sizes(members, profile, blocking)


def test_blockings_that_come_out_alike_are_one():
    members = make_parameters([1000] * 40)
    profile = even_profile(40, LinkCost(alpha_us=30.0, beta_us_per_byte=0.024), window_us=1e4)
    few = distinct_blockings(members, profile, [FINE_SHARES, COARSE_SHARES, FINE_SHARES])
    assert [len(few), few[0] == few[1]] == [2, False]
    assert few[0] == block_up(members, profile, **FINE_SHARES._asdict())


@given(many_parameters(), COSTS, st.sampled_from([0.0, 1.0, 1e4, 1e6]), st.booleans())
def test_every_rule_holds_for_up_to_2000_parameters(members, cost, window_us, gateable):
    profile = even_profile(len(members), cost, window_us=window_us, gateable=gateable)
    blocking = block_up(members, profile)
    check_blocking(members, profile, blocking)
    check_sizes(members, profile, blocking)


@given(many_parameters(), COSTS, st.sampled_from([1.0, 1e4, 1e6]))
def test_no_more_messages_than_the_rules_demand(members, cost, window_us):
    """All but one of a kind carry more than half of what no rule would have divided."""
    profile = even_profile(len(members), cost, window_us=window_us)
    rules = rules_for(members, profile)
    blocking = block_up(members, profile)
    kinds = {(m.dtype, m.wire, m.device) for m in members}
    small = [
        block
        for block in blocking.blocks
        if 2 * sum(blocking.bucket_bytes(i) for i in block.buckets) <= rules.least_bytes
    ]
    assert len(small) <= len(kinds)


def test_the_alpha_rule_holds_where_there_is_enough():
    """1,000 small gradients, windows large enough: start-up stays under its share before the
    tail."""
    cost = LinkCost(alpha_us=10.0, beta_us_per_byte=1e-3)
    members = make_parameters([5000] * 1000)
    blocking = block_up(members, even_profile(1000, cost, window_us=30_000.0))
    times = [cost.time_us(blocking.bucket_bytes(i)) for i in range(len(blocking.buckets))]
    assert len(times) < 40
    assert all(10.0 / time <= ALPHA_SHARE for time in times[:-5])


def test_messages_shrink_towards_the_end_of_backward():
    cost = LinkCost(alpha_us=10.0, beta_us_per_byte=1e-2)
    members = make_parameters([1000] * 300)
    blocking = block_up(members, even_profile(300, cost, window_us=6000.0))
    found = [blocking.bucket_bytes(i) for i in range(len(blocking.buckets))]
    assert found[0] >= 8 * found[-1]
    assert found[-5:] == sorted(found[-5:], reverse=True)


def test_a_large_one_is_cut_evenly_and_small_ones_around_it_are_fused():
    """A bias after every weight, as in the classifier of VGG: the biases travel together."""
    cost = LinkCost(alpha_us=100.0, beta_us_per_byte=1e-2)
    members = make_parameters([400_000, 10, 400_000, 10, 400_000, 10])
    blocking = block_up(members, even_profile(6, cost, window_us=30_000.0))
    cut = [b for b in blocking.blocks if len(b.buckets) > 1]
    assert [b.parameters for b in cut] == [(4,), (2,), (0,)]
    assert [b.parameters for b in blocking.blocks if len(b.buckets) == 1] == [(5, 3, 1)]


def test_what_comes_before_a_late_large_one_is_not_kept_for_it():
    """The embedding of a language model is ready last. On a link that is idle before, all others
    leave in time; on one that is behind, small messages would be a waste."""
    members = make_parameters([20_000, *([500] * 100)])
    cost = LinkCost(alpha_us=100.0, beta_us_per_byte=0.1)
    for window_us, is_behind in ((30_000.0, False), (3000.0, True)):
        blocking = block_up(members, even_profile(101, cost, window_us=window_us))
        last = [block for block in blocking.blocks if len(block.parameters) > 1][-1]
        takes_us = cost.time_us(blocking.bucket_bytes(last.buckets[0]))
        assert (last.ready_us + takes_us > 2 * window_us) == is_behind
        assert (takes_us > 600.0) == is_behind


def test_what_cannot_be_gated_shares_no_message_with_what_can():
    members = make_parameters([100] * 6)
    profile = even_profile(6, LinkCost(alpha_us=100.0, beta_us_per_byte=1e-3))
    uses = (0.0, None, 1.0, None, 2.0, 3.0)
    blocking = block_up(members, profile.model_copy(update={"first_use_us": uses}))
    assert {frozenset(b.parameters): b.need_us for b in blocking.blocks} == {
        frozenset({1, 3}): None,
        frozenset({0, 2, 4, 5}): 0.0,
    }


def test_the_window_rule_wins_over_the_alpha_rule_down_to_the_floor():
    """Start-up of 100 us, windows of 1,200 us: messages of 400 us although a quarter is start-up;
    windows of 120 us: messages of 200 us, half of it start-up, although no window holds one."""
    cost = LinkCost(alpha_us=100.0, beta_us_per_byte=1e-3)
    members = make_parameters([2_000_000])
    for window_us, longest_us in ((1200.0, 400.0), (120.0, 200.0)):
        blocking = block_up(members, even_profile(1, cost, window_us=window_us))
        times = [cost.time_us(blocking.bucket_bytes(i)) for i in range(len(blocking.buckets))]
        assert longest_us * 0.9 < max(times) <= longest_us


def test_before_the_link_was_measured_windows_say_nothing():
    members = make_parameters([10_000_000] * 4)
    short, long = Profile.assumed(4), even_profile(4, None, window_us=1e9)
    assert block_up(members, short).buckets == block_up(members, long).buckets
    assert len(block_up(members, short).buckets) > 4


def test_no_message_is_larger_than_horovod_can_count():
    members = make_parameters([3 * 2**29])  # 6 GiB
    free = LinkCost(alpha_us=0.0, beta_us_per_byte=0.0)
    blocking = block_up(members, even_profile(1, free))
    assert len(blocking.buckets) == 4
    limit = 2**31 // WIRE_ITEM_BYTES["float32"] * 4
    assert all(blocking.bucket_bytes(i) < limit for i in range(4))


@pytest.mark.parametrize("alpha_us", [0.0, 50.0])
def test_where_size_costs_nothing_one_message_is_enough(alpha_us):
    cost = LinkCost(alpha_us=alpha_us, beta_us_per_byte=0.0)
    members = make_parameters([1000] * 50)
    assert len(block_up(members, even_profile(50, cost)).buckets) == 1
