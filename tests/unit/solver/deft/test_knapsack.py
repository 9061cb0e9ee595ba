from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.solver.deft.knapsack import Knapsack, KnapsackItem, fill


@st.composite
def pieces(draw, links):
    return KnapsackItem(
        count=draw(st.integers(1, 3)),
        ticks=tuple(draw(st.integers(1, 12)) for _ in range(links)),
        steps=draw(st.integers(1, 3)),
        ready=draw(st.integers(0, 20)),
        whole=draw(st.booleans()),
        must=draw(st.booleans()) and draw(st.booleans()),
    )


@st.composite
def instances(draw, most=4):
    links = draw(st.integers(1, 2))
    window = Knapsack(
        draw(st.integers(0, 30)), tuple(draw(st.integers(0, 10)) for _ in range(links))
    )
    return draw(st.lists(pieces(links), max_size=most)), window


def too_long(members, window, counts):
    """By how many ticks the window is too short, on the link where it is shortest."""
    over = 0
    for link, used in enumerate(window.used):
        for ready in {0, *(piece.ready for piece in members)}:
            asked = sum(
                count[link] * piece.ticks[link]
                for piece, count in zip(members, counts, strict=True)
                if piece.ready >= ready
            )
            left = window.ticks - (ready or used)
            over = max(over, asked - max(0, left))
    return over


def covered(members, counts):
    return sum(
        sum(count) * piece.ticks[0] * piece.steps
        for piece, count in zip(members, counts, strict=True)
    )


def ways(piece, links):
    for counts in product(range(piece.count + 1), repeat=links):
        total = sum(counts)
        if total > piece.count or (total < piece.count and piece.must):
            continue
        if total in (0, piece.count) or not piece.whole:
            yield counts


@given(instances())
def test_it_is_as_good_as_every_other_packing(instance):
    members, window = instance
    counts = fill(members, window)
    everything = product(*(ways(piece, len(window.used)) for piece in members))
    best = min((too_long(members, window, c), -covered(members, c)) for c in everything)
    assert (too_long(members, window, counts), -covered(members, counts)) == best


@given(instances(most=12))
def test_what_it_returns_is_allowed_and_repeatable(instance):
    members, window = instance
    counts = fill(members, window)
    assert counts == fill(members, window)
    for piece, count in zip(members, counts, strict=True):
        assert count in list(ways(piece, len(window.used)))
    if not any(piece.must for piece in members):
        assert too_long(members, window, counts) == 0


def test_pieces_that_carry_more_steps_go_first():
    fresh, old = KnapsackItem(1, (10,)), KnapsackItem(1, (10,), steps=2)
    assert fill([fresh, old], Knapsack(10, (0,))) == [(0,), (1,)]


def test_links_grow_too_long_side_by_side():
    members = [KnapsackItem(1, (10, 10), must=True), KnapsackItem(1, (10, 10))]
    assert sorted(fill(members, Knapsack(5, (0, 0)))) == [(0, 1), (1, 0)]


def test_with_ties_the_first_piece_and_the_first_link_win():
    assert fill([KnapsackItem(1, (10,)), KnapsackItem(1, (10,))], Knapsack(10, (0,))) == [
        (1,),
        (0,),
    ]
    assert fill([KnapsackItem(1, (10, 10))], Knapsack(10, (0, 0))) == [(1, 0)]


def test_a_slower_link_takes_what_the_first_one_cannot():
    members = [KnapsackItem(1, (10, 25)), KnapsackItem(1, (10, 25)), KnapsackItem(1, (10, 25))]
    counts = fill(members, Knapsack(25, (0, 0)))
    assert sorted(counts) == [(0, 1), (1, 0), (1, 0)]


def test_what_must_go_goes_even_if_the_window_grows_too_long():
    assert fill([KnapsackItem(1, (10,), must=True), KnapsackItem(1, (3,))], Knapsack(5, (0,))) == [
        (1,),
        (0,),
    ]


def test_late_pieces_see_only_the_rest_of_the_window():
    late = KnapsackItem(1, (6,), ready=5)
    assert fill([late], Knapsack(10, (0,))) == [(0,)]
    assert fill([late], Knapsack(11, (0,))) == [(1,)]
