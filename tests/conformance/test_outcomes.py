"""The comparison finds what differs, and rows of the table that are no longer true."""

from __future__ import annotations

import pytest

from tests.conformance.accepted import Difference
from tests.conformance.scripts.outcomes import check, differences, in_force

ROW = Difference({"error": "none"}, "one two three four five", ("bucket",), ("auto",))


def test_equal_outcomes_have_no_differences() -> None:
    outcome = {"a": 1, "b": {"c": [1, 2.5, None]}}
    assert differences(outcome, dict(outcome)) == []
    check(outcome, dict(outcome), None)


@pytest.mark.parametrize(
    ("theirs", "mine", "where"),
    [
        ({"a": 1}, {"a": 2}, "a"),
        ({"a": 1}, {"a": 1.0}, "a"),
        ({"a": {"b": [1]}}, {"a": {"b": [1, 2]}}, "a.b"),
        ({"a": 1}, {}, "a"),
        ({}, {"a": None}, "a"),
        ({"a": None}, {}, "a"),
    ],
)
def test_a_difference_says_where(theirs: dict, mine: dict, where: str) -> None:
    assert [line.split(":", maxsplit=1)[0] for line in differences(theirs, mine)] == [where]
    with pytest.raises(AssertionError, match=where):
        check(theirs, mine, None)


def test_an_accepted_difference_passes_for_its_keys_only() -> None:
    check({"error": "E", "p": 1}, {"error": "none", "p": 1}, ROW)
    with pytest.raises(AssertionError, match="p: Horovod 1, ours 2"):
        check({"error": "E", "p": 1}, {"error": "none", "p": 2}, ROW)


def test_an_accepted_difference_has_to_be_as_the_table_says() -> None:
    with pytest.raises(AssertionError, match="the table says ours gives 'none'"):
        check({"error": "E"}, {"error": "F"}, ROW)
    with pytest.raises(AssertionError, match="equal to Horovod's now"):
        check({"error": "none"}, {"error": "none"}, ROW)


def test_a_row_is_in_force_for_its_policies() -> None:
    theirs, mine = {"error": "E"}, {"error": "none"}
    assert in_force(ROW, "bucket", theirs, theirs) is ROW
    assert in_force(ROW, "auto", theirs, mine) is ROW
    assert in_force(ROW, "auto", theirs, theirs) is None
    assert in_force(ROW, "stock", theirs, mine) is None
    assert in_force(None, "bucket", theirs, mine) is None
