"""Options that take several values, separated by commas, or that are given several times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import click

_Value = TypeVar("_Value")


class CommaList(click.ParamType[tuple[_Value, ...]], Generic[_Value]):
    """Values in the order in which they are given, each once."""

    def __init__(self, name: str, parse: Callable[[str], _Value]) -> None:
        """`parse` raises ValueError for what is no value."""
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            found = [self._parse(part.strip()) for part in value.split(",") if part.strip()]
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not found:
            self.fail(f"{value!r} names nothing", param, ctx)
        return tuple(dict.fromkeys(found))
