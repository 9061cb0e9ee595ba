from deft_horovod.plan import Bucket, Slot
from deft_horovod.plan.contents import contents


def test_shared_cut_and_foreign_slots():
    slots = [
        Slot(name="late", arena=0, begin=24, end=40),
        Slot(name="first", arena=0, begin=0, end=5),
        Slot(name="second", arena=0, begin=8, end=24),
        Slot(name="other", arena=1, begin=0, end=4),
    ]
    buckets = [
        Bucket(arena=1, begin=0, end=4),
        Bucket(arena=0, begin=16, end=40),
        Bucket(arena=0, begin=0, end=16),
    ]
    assert contents(slots, buckets) == ((3,), (2, 0), (1, 2))


def test_a_bucket_of_padding_alone_is_empty():
    slots = [Slot(name="w", arena=0, begin=0, end=5)]
    buckets = [Bucket(arena=0, begin=0, end=8), Bucket(arena=0, begin=8, end=12)]
    assert contents(slots, buckets) == ((0,), ())


def test_nothing_in_nothing():
    assert contents([], []) == ()
