"""The books: a displacement says which steps were applied, and how often."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.faults.scripts.ledger import BASE, DIGITS, Books, digits

counts = st.lists(st.integers(0, BASE - 1), min_size=1, max_size=DIGITS)


@given(counts)
def test_digits_are_how_often_each_step_is_in_it(applied: list[int]) -> None:
    found = digits(float(sum(n * BASE**i for i, n in enumerate(applied))))
    assert found is not None
    assert found + [0] * (len(applied) - len(found)) == applied


@pytest.mark.parametrize("amount", [-1.0, 0.5, 2.25])
def test_parts_of_steps_are_none(amount: float) -> None:
    assert digits(amount) is None


class _Bench:
    """A model and its books after some steps, of which those in `applied` have moved it."""

    def __init__(self, kept: list[int], applied: list[int]) -> None:
        self.model = nn.Linear(3, 2, bias=False)
        nn.init.zeros_(self.model.weight)
        self.books = Books(self.model)
        for step in kept:
            self.books.enter(step, [True])
        with torch.no_grad():
            self.model.weight -= float(sum(BASE**step for step in applied))


def test_what_was_entered_and_applied_is_fine() -> None:
    bench = _Bench([0, 1, 3], [3, 0, 1])
    assert bench.books.check(bench.model, dropped=0) == []


def test_a_lost_step_is_found_unless_it_was_counted() -> None:
    bench = _Bench([0, 1, 3], [0, 3])
    assert "lost" in bench.books.check(bench.model, dropped=0)[0]
    assert bench.books.check(bench.model, dropped=1) == []


def test_a_step_applied_twice_is_found_always() -> None:
    bench = _Bench([0, 1], [0, 1, 1])
    assert "more often" in bench.books.check(bench.model, dropped=5)[0]


def test_the_part_of_one_rank_is_found_always() -> None:
    bench = _Bench([0, 1], [0, 1])
    with torch.no_grad():
        bench.model.weight[0, 0] -= 0.25
    assert "no sum" in bench.books.check(bench.model, dropped=5)[0]


def test_going_back_to_a_checkpoint_takes_its_books_along() -> None:
    bench = _Bench([0], [0])
    state, weight = bench.books.state(), bench.model.weight.detach().clone()
    bench.books.enter(1, [True])
    bench.books.load(state)
    bench.model.weight.data.copy_(weight)
    assert bench.books.check(bench.model, dropped=0) == []


def test_a_frozen_parameter_is_not_entered() -> None:
    bench = _Bench([0], [0])
    bench.books.enter(1, [False])
    assert bench.books.check(bench.model, dropped=0) == []
