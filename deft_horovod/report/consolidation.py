"""A packing as a page: how many machines, and which jobs share them."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from deft_horovod.capacity.answer.packings import ConsolidationAnswer, ToldPacking
from deft_horovod.capacity.answer.sentences import consolidation_sentences
from deft_horovod.plan.words import many
from deft_horovod.report.basics.markup import element
from deft_horovod.report.basics.shell import shell
from deft_horovod.report.basics.tables import Column, table


def consolidation_page(answer: ConsolidationAnswer) -> str:
    """The same answer makes the same page."""
    told = many(answer.ours.machines, "machine")
    sections = [_packing("Who shares which machine", answer.ours)]
    if answer.stock is not None:
        sections.append(_packing("With stock Horovod", answer.stock))
    return shell(
        f"{told} - deft_horovod consolidation of {answer.source}",
        element("p", f"Consolidation: {answer.source}", class_="kicker"),
        element("h1", told),
        *(element("p", f"{text}.", class_="verdict") for text in consolidation_sentences(answer)),
        *sections,
    )


def _packing(title: str, told: ToldPacking) -> Element:
    columns = [
        Column("machine"),
        Column("jobs and their ranks", sentence=True),
        Column("ranks left", number=True),
    ]
    rows = [
        (
            one.machine,
            ", ".join(f"{name} {ranks}" for name, ranks in one.jobs),
            str(one.ranks_left),
        )
        for one in told.shared
    ]
    return element("section", element("h2", title), table("Machines", columns, rows))
