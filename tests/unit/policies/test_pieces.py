from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.config import Config
from deft_horovod.plan.contents import contents
from deft_horovod.policies import Request
from deft_horovod.policies.pieces import (
    Piece,
    by_priority,
    even_pieces,
    horovod_link,
    need_us,
    plan_of_pieces,
    use_order,
    wire_bytes,
)
from deft_horovod.profile import LinkCost, Profile
from tests.unit.support.planning import bucket_bytes, make_parameters, requests

COST = LinkCost(alpha_us=100.0, beta_us_per_byte=0.01)


@given(requests(linked=True), st.sampled_from([1, 64, 1000, 10**9]), st.data())
def test_every_gradient_is_cut_in_the_order_of_its_pieces(request, piece_bytes, data):
    pick = data.draw(st.randoms(use_true_random=False))
    sizes = wire_bytes(request)
    pieces = [
        Piece(index, size, pick.random() < 0.5)
        for index, total in enumerate(sizes)
        for size in even_pieces(total, piece_bytes)[:9]
    ]
    order = pick.sample(pieces, len(pieces))
    late = frozenset(pick.sample(range(len(sizes)), pick.randint(0, len(sizes))))
    plan = plan_of_pieces("mine", request, order, horovod_link(), late)
    members = contents(plan.slots, plan.buckets)
    for generation, inside in zip(plan.generations, members, strict=True):
        assert len(inside) == 1  # no message carries parts of two gradients
        known = request.profile.first_use_us[inside[0]] is not None
        assert generation.delay == (inside[0] in late)
        assert generation.gated == (known and inside[0] not in late)
    windows = [(task.step, task.stage == "backward") for task in plan.tasks]
    assert windows == sorted(windows)
    begins = {}
    for task in plan.tasks:
        if task.stage == "backward":
            bucket = plan.buckets[task.generation]
            owner = members[task.generation][0]
            assert bucket.begin >= begins.get(owner, -1)
            begins[owner] = bucket.begin
    total = sum(bucket_bytes(plan.arenas, bucket) for bucket in plan.buckets)
    assert total == sum(sizes)


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_even_pieces_are_of_one_size_but_for_the_last(size_bytes, piece_bytes):
    pieces = even_pieces(size_bytes, piece_bytes)
    assert sum(pieces) == size_bytes
    assert all(piece == pieces[0] and piece % 16 == 0 for piece in pieces[:-1])
    assert 0 < pieces[-1] <= max(pieces[0], 16)
    assert all(piece <= max(16, piece_bytes) for piece in pieces)


def test_the_queue_prefers_what_forward_needs_first():
    """Three layers of 1,600 bytes; 100 + 16 us a message. Backward ends at 300 us."""
    profile = Profile(
        ready_order=(2, 1, 0),
        ready_us=(300.0, 200.0, 100.0),
        first_use_us=(0.0, 50.0, 100.0),
        forward_us=150.0,
        backward_us=300.0,
        links=Profile.link_of(COST),
    )
    request = Request(make_parameters([396] * 3), profile, Config())
    assert wire_bytes(request) == (1600, 1600, 1600)
    assert use_order(profile) == [0, 1, 2]
    pieces = by_priority(request, profile.links[0], 800, horovod_link(credit_messages=1))
    # Layer 2 from 100 us on; at 208 the first half of layer 1 overtakes its second half.
    order = [(piece.parameter, piece.forward) for piece in pieces]
    assert order == [(2, False), (1, False), (0, True), (0, True), (1, True), (2, True)]


def test_what_has_no_known_use_is_needed_at_the_boundary():
    profile = Profile.assumed(2).model_copy(update={"first_use_us": (5.0, None)})
    assert need_us(profile, 1) < 0.0 < need_us(profile, 0)
    assert use_order(profile) == [1, 0]
