"""What is told of a packing."""

from tests.unit.support.capacity.answers import consolidation_answer


def test_who_shares_which_machine():
    answer = consolidation_answer()
    (shared,) = answer.ours.shared
    assert (shared.machine, shared.jobs, shared.ranks_left) == ("lab 1", (("a", 2), ("b", 2)), 0)
    assert (answer.ours.machines, answer.stock.machines) == (1, 2)
    assert answer.ours.without_room == []


def test_data_hold_all_of_it():
    data = consolidation_answer(rented=True).to_data()
    assert data["ours"]["shared"][0]["jobs"] == [["a", 2], ["b", 2]]
    assert (data["ours"]["rent_per_hour"], data["stock"]["rent_per_hour"]) == (1.5, 3.0)
