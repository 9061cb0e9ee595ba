"""Random models, measurements and requests for the planning tests."""

from itertools import pairwise

from hypothesis import strategies as st

from deft_horovod.base.parameter import WIRE_ITEM_BYTES, WIRES, Parameter
from deft_horovod.config import Config
from deft_horovod.policies import Request
from deft_horovod.profile import LinkCost, Profile

MANY = 2000
KINDS = [(dtype, wire) for dtype, wires in WIRES.items() for wire in wires]


def make_parameters(sizes, dtype="float32", wire="float32", device="cpu"):
    return tuple(Parameter(f"p{i}", size, dtype, wire, device) for i, size in enumerate(sizes))


@st.composite
def parameters(draw, max_count=40):
    """Mostly a few, with zero-size and scalar ones, of several kinds and on two devices."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True))
    devices = draw(st.sampled_from([["cpu"], ["cpu", "cuda"]]))
    sizes = draw(
        st.lists(
            st.one_of(st.sampled_from([0, 1, 3, 4, 5]), st.integers(0, 5000)),
            min_size=1,
            max_size=max_count,
        )
    )
    pick = draw(st.randoms(use_true_random=False))
    return tuple(
        Parameter(f"layer{i}.weight", size, *pick.choice(kinds), pick.choice(devices))
        for i, size in enumerate(sizes)
    )


@st.composite
def many_parameters(draw):
    """1 to 2,000 of them; the generator makes the sizes, so that examples stay cheap."""
    count = draw(st.one_of(st.integers(1, 60), st.integers(1, MANY), st.just(MANY)))
    pick = draw(st.randoms(use_true_random=False))
    kinds = pick.sample(KINDS, pick.randint(1, 3))
    return tuple(
        Parameter(f"p{i}", pick.choice([0, 1, pick.randint(0, 3000)]), *pick.choice(kinds), "cpu")
        for i in range(count)
    )


@st.composite
def profiles(draw, count, linked=None):
    """Ready order and times need not agree: times are medians, the order is one of them all."""
    order = draw(st.permutations(range(count)))
    time = st.floats(0, 1e5, allow_nan=False)
    times = draw(st.lists(time, min_size=count, max_size=count))
    uses = draw(st.lists(st.one_of(st.none(), time), min_size=count, max_size=count))
    cost = st.builds(
        LinkCost, alpha_us=st.floats(0, 1e3), beta_us_per_byte=st.sampled_from([0.0, 1e-3, 1.0])
    )
    choices = {None: st.one_of(st.none(), cost), True: cost, False: st.none()}
    return Profile(
        ready_order=tuple(order),
        ready_us=tuple(times),
        first_use_us=tuple(uses),
        forward_us=draw(time),
        backward_us=draw(time),
        links=Profile.link_of(draw(choices[linked])),
    )


@st.composite
def groupings(draw, count):
    """Disjoint groups that leave some parameters out."""
    order = draw(st.permutations(range(count)))
    cuts = sorted(draw(st.lists(st.integers(0, count), max_size=6)))
    parts = [tuple(order[a:b]) for a, b in pairwise(cuts)]
    return tuple(part for part in parts if part)


@st.composite
def configs(draw):
    size = st.sampled_from([1024, 4096, 10_000, 100_000])
    return Config(
        bucket_bytes=draw(size),
        first_bucket_bytes=draw(size),
        partition_bytes=draw(size),
        credit_bytes=draw(st.sampled_from([0, 1, 5000, 50_000])),
        credit_messages=draw(st.sampled_from([0, 1, 3])),
    )


@st.composite
def requests(draw, grouped=False, linked=None):
    members = draw(parameters())
    return Request(
        parameters=members,
        profile=draw(profiles(len(members), linked)),
        config=draw(configs()),
        groups=draw(groupings(len(members))) if grouped else (),
    )


def assert_carried_once(parameters, arenas, slots, buckets):
    """Every element of every parameter lies in exactly one bucket, and in an arena of its kind."""
    ranges = sorted((bucket.arena, bucket.begin, bucket.end) for bucket in buckets)
    expected_begin = [0] * len(arenas)
    for arena, begin, end in ranges:
        assert begin == expected_begin[arena]
        assert end > begin
        expected_begin[arena] = end
    assert expected_begin == [arena.elements for arena in arenas]

    taken = sorted((slot.arena, slot.begin, slot.end) for slot in slots)
    for (arena, _, end), (next_arena, next_begin, _) in pairwise(taken):
        assert arena != next_arena or end <= next_begin
    for parameter, slot in zip(parameters, slots, strict=True):
        arena = arenas[slot.arena]
        header = 16 // WIRE_ITEM_BYTES[parameter.wire]
        assert slot.name == parameter.name
        assert slot.end - slot.begin == header + parameter.elements
        assert slot.begin % header == 0
        assert slot.end <= arena.elements
        assert (arena.dtype, arena.wire, arena.device) == (
            parameter.dtype,
            parameter.wire,
            parameter.device,
        )


def bucket_bytes(arenas, bucket):
    return (bucket.end - bucket.begin) * WIRE_ITEM_BYTES[arenas[bucket.arena].wire]
