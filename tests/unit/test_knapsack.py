from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod.solver.knapsack import Piece, Window, fill


@st.composite
def windows(draw, most_links=2):
    links = draw(st.integers(1, most_links))
    pieces = [
        Piece(
            count=draw(st.sampled_from([1, 1, 2, 3])),
            ticks=tuple(draw(st.integers(0, 30)) for _ in range(links)),
            steps=draw(st.integers(1, 3)),
            ready=draw(st.sampled_from([0, 0, 20, 40, 70])),
            whole=draw(st.booleans()),
            must=draw(st.integers(0, 5)) == 0,
        )
        for _ in range(draw(st.integers(1, 4)))
    ]
    used = tuple(draw(st.sampled_from([0, 0, 10, 90])) for _ in range(links))
    return pieces, Window(draw(st.integers(1, 80)), used)


def ways(piece, links):
    for counts in product(range(piece.count + 1), repeat=links):
        allowed = {piece.count} if piece.must else {0, piece.count}
        is_part = sum(counts) < piece.count and not piece.whole and not piece.must
        if sum(counts) in allowed or is_part:
            yield counts


def too_long(pieces, window, counts):
    """By how much the window is too short for what travels."""
    longest = 0
    for link, used in enumerate(window.used):
        times = [
            (piece.ready, piece.ticks[link] * of[link])
            for piece, of in zip(pieces, counts, strict=True)
        ]
        longest = max(longest, sum(time for _, time in times) - max(0, window.ticks - used))
        for ready in {ready for ready, _ in times if ready}:
            late = sum(time for at, time in times if at >= ready)
            longest = max(longest, late - max(0, window.ticks - ready))
    return longest


def covered(pieces, counts):
    return sum(
        piece.ticks[0] * piece.steps * sum(of) for piece, of in zip(pieces, counts, strict=True)
    )


@settings(max_examples=150)
@given(windows())
def test_as_much_is_covered_as_any_choice_can(given_window):
    pieces, window = given_window
    counts = fill(pieces, window)
    links = len(window.used)
    everything = list(product(*(list(ways(piece, links)) for piece in pieces)))
    assert tuple(counts) in everything
    shortest = min(too_long(pieces, window, way) for way in everything)
    assert too_long(pieces, window, counts) == shortest
    best = max(
        covered(pieces, way) for way in everything if too_long(pieces, window, way) == shortest
    )
    assert covered(pieces, counts) == best


def test_the_first_wins_a_tie():
    pieces = [Piece(1, (10,)), Piece(1, (10,)), Piece(1, (10,))]
    assert fill(pieces, Window(25, (0,))) == [(1,), (1,), (0,)]


def test_an_older_sum_is_worth_more():
    pieces = [Piece(1, (20,)), Piece(1, (15,), steps=3)]
    assert fill(pieces, Window(25, (0,))) == [(0,), (1,)]


def test_what_is_ready_late_has_only_the_rest_of_the_window():
    pieces = [Piece(1, (30,)), Piece(1, (25,), ready=60), Piece(1, (10,), ready=80)]
    assert fill(pieces, Window(100, (0,))) == [(1,), (1,), (1,)]
    assert fill(pieces, Window(90, (0,))) == [(1,), (1,), (0,)]
    assert fill(pieces, Window(100, (65,))) == [(0,), (1,), (1,)]


def test_links_are_knapsacks_of_their_own():
    pieces = [Piece(1, (20, 50)), Piece(1, (20, 50)), Piece(2, (10, 25), whole=False)]
    counts = fill(pieces, Window(50, (0, 0)))
    assert [sum(of) for of in counts] == [1, 1, 2]
    assert too_long(pieces, Window(50, (0, 0)), counts) == 0
    assert fill(pieces[:1], Window(60, (0, 0))) == [(1, 0)]  # the faster one


def test_what_must_travel_does_and_nothing_else_is_added():
    pieces = [Piece(1, (60,), must=True), Piece(1, (5,))]
    assert fill(pieces, Window(50, (0,))) == [(1,), (0,)]


def test_an_empty_window_has_nothing():
    assert fill([], Window(10, (0,))) == []
