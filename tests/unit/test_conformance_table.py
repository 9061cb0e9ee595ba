"""The page on conformance has a row for each case compared with Horovod, and for no other."""

from __future__ import annotations

import re

import pytest

from tests.conformance.accepted import ACCEPTED
from tests.conformance.programs import POLICIES, SCRIPTS, programs, scenarios
from tests.conformance.test_elastic import SCENARIOS
from tests.places import ROOT

PAGE = ROOT / "docs" / "reference" / "conformance.md"


def rows(title: str) -> list[list[str]]:
    """The cells of the table under a title, without its head."""
    text = PAGE.read_text(encoding="utf-8")
    section = text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named_in(title: str) -> list[str]:
    return [name for row in rows(title) for name in re.findall(r"`(\w+\.\w+)`", row[-1])]


def all_cases() -> set[str]:
    named = {f"{program}.{case}" for program in programs() for case in scenarios(program)}
    return named | {f"elastic.{name}" for name in SCENARIOS}


def test_every_case_has_one_row_and_every_row_a_case() -> None:
    listed = named_in("Equal") + named_in("Different")
    assert sorted(listed) == sorted(all_cases())


def test_what_differs_is_what_the_harness_accepts() -> None:
    assert sorted(named_in("Different")) == sorted(ACCEPTED)


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_difference_names_what_differs_where_and_why(name: str) -> None:
    accepted = ACCEPTED[name]
    assert accepted.ours
    assert set(accepted.policies) | set(accepted.sometimes) <= set(POLICIES)
    assert not set(accepted.policies) & set(accepted.sometimes)
    assert len(accepted.reason.split()) >= 5


def test_the_page_gives_the_reasons_of_the_table() -> None:
    given = {row[-1].strip("`"): row[3] for row in rows("Different")}
    assert given == {name: accepted.reason for name, accepted in ACCEPTED.items()}


def test_every_program_has_a_test_file_of_its_name() -> None:
    folder = SCRIPTS.parent
    files = {path.stem.removeprefix("test_") for path in folder.glob("test_*.py")} - {
        "elastic",
        "outcomes",
    }
    assert files == set(programs())
