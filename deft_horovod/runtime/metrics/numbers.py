"""The numbers of ``stats()``, each under one name. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# What these hold has names of the job: of links, formats, candidates, reasons.
_NAMED = {
    "links": "link",
    "formats": "format",
    "trials_us": "candidate",
    "replans": "reason",
    "verdicts": "verdict",
    "added_noise": "format",
}


@dataclass(frozen=True)
class Number:
    """`of`: the kind of thing that it belongs to, and its name; both empty: the whole job."""

    path: tuple[str, ...]
    value: float
    of: tuple[str, str] = ("", "")

    @property
    def name(self) -> str:
        """For people, with the name of what it belongs to."""
        return "/".join((*self.path, *self.of[1:])) if self.of[0] else "/".join(self.path)


def numbers(stats: Mapping[str, Any]) -> list[Number]:
    """All that can be drawn over time. Texts, lists and what is not known are left out."""
    return list(_numbers((), stats, ("", "")))


def _numbers(
    path: tuple[str, ...], values: Mapping[str, Any], of: tuple[str, str]
) -> Iterator[Number]:
    for key, value in values.items():
        if isinstance(value, (bool, int, float)):
            yield Number((*path, key), float(value), of)
        elif isinstance(value, Mapping) and key in _NAMED:
            for name, inside in value.items():
                held = inside if isinstance(inside, Mapping) else {"": inside}
                for number in _numbers((*path, key), held, (_NAMED[key], str(name))):
                    yield Number(tuple(filter(None, number.path)), number.value, number.of)
        elif isinstance(value, Mapping):
            yield from _numbers((*path, key), value, of)
