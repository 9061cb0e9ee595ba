"""What is told of a schedule."""

import json

from deft_horovod.capacity.answer.schedules import CapacityAnswer
from tests.unit.support.capacity.answers import capacity_answer


def test_rows_add_up():
    answer = capacity_answer()
    ours = answer.ours
    assert [row.job for row in ours.jobs] == ["<b>", "b", "c", "d"]
    assert all(row.slack_s == row.deadline_s - row.to_s >= 0 for row in ours.jobs)
    assert sum(row.rent for row in ours.rented) == ours.rent
    assert answer.saved == answer.stock.rent - ours.rent > 0


def test_missed_jobs_come_with_remedies():
    told = capacity_answer(jobs=8).stock
    assert len(told.missed) == 2
    (later, more) = told.missed[0].remedies
    assert {later.kind, more.kind} == {None, 1}


def test_savings_are_compared_only_where_as_many_are_missed():
    assert capacity_answer(jobs=8).saved is None
    alone = capacity_answer(stock=False)
    assert alone.saved is None
    assert isinstance(alone, CapacityAnswer)
    assert json.loads(json.dumps(alone.to_data()))["stock"] is None


def test_data_hold_all_of_it():
    data = capacity_answer(jobs=8).to_data()
    assert data["version"] == 1
    assert {"rent", "gap", "jobs", "rented", "missed", "own_use"} <= data["ours"].keys()
    assert data["stock"]["missed"][0]["remedies"][0].keys() == {
        "deadline_s",
        "machine",
        "machines",
        "rent",
    }
