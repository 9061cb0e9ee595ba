"""Figures from the literature: all have a source and a mark, and what was used is known."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest


def test_every_figure_has_a_mark_and_a_source(reproduction: SimpleNamespace) -> None:
    facts = reproduction.facts.load()
    assert len(facts.known) > 100
    for fact in facts.known.values():
        assert fact.mark in reproduction.facts.MARKS
        assert fact.source in facts.sources
        assert fact.unit
        assert fact.value > 0
        # What was read somewhere else is published; what is ours says why.
        outside = fact.source not in {"ours", "shapes"}
        assert outside == (fact.mark == "published"), fact
        assert fact.note or fact.source != "ours", fact


def test_every_source_is_used(reproduction: SimpleNamespace) -> None:
    facts = reproduction.facts.load()
    assert {fact.source for fact in facts.known.values()} == set(facts.sources)


def test_what_was_looked_up_is_remembered(reproduction: SimpleNamespace) -> None:
    facts = reproduction.facts.load()
    assert facts.used == []
    assert facts["dear.gpus"] == 64
    assert facts.derive("x", 2.0, "ms", "twice one") == 2.0
    assert facts.assume("a", 3.0, "ms", "a guess") == 3.0
    assert [(fact.name, fact.mark) for fact in facts.used] == [
        ("a", "assumed"),
        ("dear.gpus", "published"),
        ("x", "derived"),
    ]
    assert set(facts.cited()) == {"dear_paper", "ours"}
    with pytest.raises(KeyError):
        facts["nothing.of.the.kind"]


ENTRY = {"name": "a", "value": 1, "unit": "ms", "mark": "published", "source": "paper"}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([ENTRY, ENTRY], "says again what a is"),
        ([{**ENTRY, "mark": "heard"}], "mark 'heard'"),
        ([{**ENTRY, "source": "nobody"}], "source 'nobody'"),
    ],
)
def test_bad_figures_are_refused(
    reproduction: SimpleNamespace, tmp_path: Path, entries: list, message: str
) -> None:
    def write(name: str, data: dict) -> None:
        (tmp_path / name).write_text(json.dumps(data), encoding="utf-8")

    write("sources.json", {"version": 1, "sources": {"paper": "A paper"}})
    write("figures.json", {"version": 1, "facts": [ENTRY]})
    assert reproduction.facts.load(tmp_path)["a"] == 1
    write("figures.json", {"version": 1, "facts": entries})
    with pytest.raises(ValueError, match=message):
        reproduction.facts.load(tmp_path)
    write("figures.json", {"version": 2, "facts": []})
    with pytest.raises(ValueError, match="version 2"):
        reproduction.facts.load(tmp_path)
