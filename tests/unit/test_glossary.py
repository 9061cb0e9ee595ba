"""docs/glossary.md: one word for one thing. A word that it has retired does not come back."""

import re

import pytest

from tests.places import ROOT

ROWS = re.findall(
    r"^\| ([a-z ]+) \| ([^|]+) \| ([^|]*)\|$",
    (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)[1:]
# MPI's word and torch's: their names are theirs.
OTHERS = dict.fromkeys(["config.py", "process_group.py", "stand_in.py"], frozenset({"world"}))
RETIRED = [word for _, _, old in ROWS for word in old.strip().split(", ") if word]
# Names in code, split as a reader would: LinkCost is link and cost, _in_flight in and flight.
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def words_of(text: str) -> set[str]:
    return {word.lower() for word in WORD.findall(text)}


def test_words_are_in_order_and_there_once():
    words = [word for word, _, _ in ROWS]
    assert words == sorted(set(words))
    assert not {*words} & {*RETIRED}
    assert len(words) > 20


def test_retired_words_do_not_come_back():
    files = (ROOT / "deft_horovod").rglob("*.py")
    found = {
        path.relative_to(ROOT).as_posix(): used
        for path in files
        if (
            used := words_of(path.read_text(encoding="utf-8"))
            & {*RETIRED} - OTHERS.get(path.name, set())
        )
    }
    assert found == {}


@pytest.mark.parametrize("name", ["Pilot", "_pilot", "self._pilot_of", "the pilot of", "PILOT"])
def test_it_is_found_in_any_name(name):
    assert "pilot" in words_of(name)
