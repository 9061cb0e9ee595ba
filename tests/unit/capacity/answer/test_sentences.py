"""Answers in sentences."""

from deft_horovod.capacity.answer.sentences import (
    capacity_sentences,
    consolidation_sentences,
    money,
)
from tests.unit.support.capacity.answers import capacity_answer, consolidation_answer


def test_money_has_two_places():
    assert money(1234.5) == "1,234.50"


def test_what_our_plans_save_comes_last():
    *_, stock, use, saved = capacity_sentences(capacity_answer())
    assert stock.startswith("with stock Horovod: rent ")
    assert use.startswith("with stock Horovod: own machines work ")
    assert saved.startswith("our plans save ")


def test_missed_jobs_come_first_with_what_would_help():
    answer = capacity_answer(jobs=8)
    *_, stock, _ = capacity_sentences(answer)
    assert "; missed: " in stock
    (first, *_) = capacity_sentences(type(answer)("jobs.yaml", answer.stock))
    assert "is missed; it would not be with " in first
    assert "a deadline of " in first
    assert "1 more of rented (rent +" in first


def test_machines_are_counted():
    assert consolidation_sentences(consolidation_answer(rented=True)) == [
        "1 machine, and fewer cannot do; rent 1.50 an hour",
        "with stock Horovod: 2 machines, and fewer cannot do; rent 3.00 an hour",
    ]
