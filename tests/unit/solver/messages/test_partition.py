from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.plan.contents import contents
from deft_horovod.solver.messages.layout import lay_out
from deft_horovod.solver.messages.partition import partition
from tests.unit.support.planning import (
    assert_carried_once,
    bucket_bytes,
    make_parameters,
    many_parameters,
    parameters,
)

CAPS = st.sampled_from([16, 1000, 4096, 100_000])


@given(many_parameters(), CAPS)
def test_partition_carries_every_element_once_within_the_cap(members, cap):
    layout = lay_out(members, range(len(members)))
    buckets = partition(layout, partition_bytes=cap)
    assert buckets == partition(layout, partition_bytes=cap)
    assert_carried_once(members, layout.arenas, layout.slots, buckets)
    for bucket in buckets:
        assert bucket_bytes(layout.arenas, bucket) <= cap
        assert bucket.begin * layout.item_bytes(bucket.arena) % 16 == 0
        assert bucket.end * layout.item_bytes(bucket.arena) % 16 == 0


@given(many_parameters(), CAPS)
def test_a_slot_is_cut_only_if_it_must_be_and_then_evenly(members, cap):
    layout = lay_out(members, range(len(members)))
    buckets = partition(layout, partition_bytes=cap)
    pieces = {index: [] for index in range(len(members))}
    inside_of = contents(layout.slots, buckets)
    for bucket, inside in zip(buckets, inside_of, strict=True):
        for index in inside:
            pieces[index].append((bucket, len(inside)))
    for arena, spans in enumerate(layout.spans):
        for span in spans:
            size = (span.end - span.begin) * layout.item_bytes(arena)
            mine = pieces[span.parameter]
            if size <= cap:
                assert len(mine) == 1
            else:
                assert all(sharing == 1 for _, sharing in mine)
                assert len(mine) == -(-size // (cap // 16 * 16))
                sizes = [bucket_bytes(layout.arenas, bucket) for bucket, _ in mine]
                assert max(sizes) - min(sizes) <= 16


@given(st.data(), CAPS)
def test_classes_share_no_bucket(data, cap):
    members = data.draw(parameters())
    classes = data.draw(st.lists(st.booleans(), min_size=len(members), max_size=len(members)))
    layout = lay_out(members, range(len(members)))
    buckets = partition(layout, partition_bytes=cap, classes=classes)
    assert_carried_once(members, layout.arenas, layout.slots, buckets)
    for inside in contents(layout.slots, buckets):
        assert len({classes[index] for index in inside}) == 1


def test_small_slots_fuse_and_large_ones_are_cut():
    layout = lay_out(make_parameters([4, 4, 36, 4]), range(4))  # 32, 32, 160, 32 bytes
    buckets = partition(layout, partition_bytes=64)
    assert [(b.begin * 4, b.end * 4) for b in buckets] == [
        (0, 64),
        (64, 112),
        (112, 160),
        (160, 224),
        (224, 256),
    ]
