from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.plan.contents import contents
from deft_horovod.solver.messages.fusion import fuse
from deft_horovod.solver.messages.layout import lay_out, order_with_groups
from tests.unit.support.planning import (
    assert_carried_once,
    bucket_bytes,
    groupings,
    make_parameters,
    many_parameters,
    parameters,
)

CAPS = st.sampled_from([16, 1000, 4096, 100_000])


@given(many_parameters(), CAPS, CAPS)
def test_fusion_carries_every_element_once_within_the_caps(members, first, cap):
    layout = lay_out(members, range(len(members)))
    buckets = fuse(layout, first_bucket_bytes=first, bucket_bytes=cap)
    assert buckets == fuse(layout, first_bucket_bytes=first, bucket_bytes=cap)
    assert_carried_once(members, layout.arenas, layout.slots, buckets)
    seen_arenas = set()
    for bucket, inside in zip(buckets, contents(layout.slots, buckets), strict=True):
        limit = cap if bucket.arena in seen_arenas else first
        seen_arenas.add(bucket.arena)
        assert len(inside) == 1 or bucket_bytes(layout.arenas, bucket) <= limit


@given(many_parameters(), CAPS)
def test_fusion_closes_no_bucket_early(members, cap):
    layout = lay_out(members, range(len(members)))
    buckets = fuse(layout, first_bucket_bytes=cap, bucket_bytes=cap)
    spans = {(a, s.begin): s.end - s.begin for a, group in enumerate(layout.spans) for s in group}
    for bucket in buckets:
        behind = spans.get((bucket.arena, bucket.end))
        if behind is not None:
            items = bucket.end - bucket.begin + behind
            assert items * layout.item_bytes(bucket.arena) > cap


@given(st.data(), CAPS, CAPS)
def test_each_group_is_one_bucket_in_each_arena(data, first, cap):
    members = data.draw(parameters())
    groups = data.draw(groupings(len(members)))
    order = order_with_groups(range(len(members)), groups)
    layout = lay_out(members, order)
    buckets = fuse(layout, first_bucket_bytes=first, bucket_bytes=cap, groups=groups)
    assert_carried_once(members, layout.arenas, layout.slots, buckets)
    carried = [set(inside) for inside in contents(layout.slots, buckets)]
    for group in groups:
        for arena in {layout.slots[index].arena for index in group}:
            part = {index for index in group if layout.slots[index].arena == arena}
            assert part in carried
    grouped = {index for group in groups for index in group}
    assert all(not inside & grouped or inside <= grouped for inside in carried)


def test_a_large_slot_travels_alone_between_small_ones():
    layout = lay_out(make_parameters([4, 4, 1000, 4, 4]), range(5))
    buckets = fuse(layout, first_bucket_bytes=64, bucket_bytes=512)
    assert contents(layout.slots, buckets) == ((0, 1), (2,), (3, 4))


def test_the_first_bucket_is_small():
    layout = lay_out(make_parameters([12] * 6), range(6))  # 64 bytes each
    buckets = fuse(layout, first_bucket_bytes=64, bucket_bytes=192)
    assert contents(layout.slots, buckets) == ((0,), (1, 2, 3), (4, 5))
