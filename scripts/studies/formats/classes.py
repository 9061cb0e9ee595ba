"""What the deciding studies say of each class of optimizers: protocol-larger.md has the rule,
protocol-repeated.md which studies."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from scripts.studies.formats.report import Verdict
from scripts.studies.formats.study import LARGER_TASKS, REPLACED, Setting

CLASSES: Final[Mapping[str, str]] = {
    "sgd": "momentum",
    "nesterov": "momentum",
    "adamw": "adaptive",
    "adamw95": "adaptive",
    "muon": "orthogonal",
}
_SHARE: Final = 0.8  # of the settings that have to be non-inferior
_MOST: Final = 0.005  # mean difference
_ERRORS: Final = 2.0  # of the mean, that a larger one has to exceed
_HEAD: Final = """\
# Wire formats: which optimizers get them by default

Made by `python -m scripts.studies.formats.run classes` from the data of the repeated study, of
that of larger tasks and of those on images and colours, `int8`. The rule was fixed before:
[protocol-larger.md](protocol-larger.md#change-before-any-run-classes-of-optimizers),
[protocol-repeated.md](protocol-repeated.md), [protocol-images.md](protocol-images.md),
[protocol-colours.md](protocol-colours.md).

| class | settings | non-inferior | of the larger | worse | above 0.5 % | to come | by default |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Decision:
    """On one class."""

    settings: int
    non_inferior: int
    larger: int
    larger_non_inferior: int
    worse: int
    too_much: int  # settings whose mean difference is
    to_come: int  # settings that are not trained yet

    @property
    def by_default(self) -> bool:
        return (
            self.non_inferior >= _SHARE * self.settings
            and self.larger_non_inferior == self.larger > 0
            and self.worse == self.too_much == self.to_come == 0
        )


def decisions(
    found: Mapping[Setting, Verdict | None], to_come: Collection[Setting] = ()
) -> dict[str, Decision]:
    """By class. Settings in which exact training diverged say nothing; a class with settings
    that are not trained yet is not decided."""
    known = {setting: one for setting, one in found.items() if one is not None}
    decided = {}
    for name in dict.fromkeys(CLASSES.values()):
        mine = {
            s: one
            for s, one in known.items()
            if CLASSES[s.optimizer] == name and s.task not in REPLACED
        }
        larger = [one for s, one in mine.items() if s.task in LARGER_TASKS]
        decided[name] = Decision(
            settings=len(mine),
            non_inferior=sum(one.non_inferior for one in mine.values()),
            larger=len(larger),
            larger_non_inferior=sum(one.non_inferior for one in larger),
            worse=sum(one.worse for one in mine.values()),
            too_much=sum(map(_is_too_much, mine.values())),
            to_come=sum(CLASSES[s.optimizer] == name and s.task not in REPLACED for s in to_come),
        )
    return decided


def _is_too_much(verdict: Verdict) -> bool:
    one = verdict.difference
    if not math.isfinite(one.mean):
        return True
    return one.mean > max(_MOST, _ERRORS * one.deviation / math.sqrt(one.seeds))


def page(found: Mapping[Setting, Verdict | None], to_come: Collection[Setting] = ()) -> str:
    """As Markdown."""
    rows = [
        f"| {name} | {one.settings} | {one.non_inferior} "
        f"| {one.larger_non_inferior} of {one.larger} | {one.worse} | {one.too_much} "
        f"| {one.to_come} | {'formats' if one.by_default else 'exact'} |"
        for name, one in decisions(found, to_come).items()
    ]
    return _HEAD + "\n".join(rows) + "\n"
