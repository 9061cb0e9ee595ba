"""Options in words: what each allows, and the values it has."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from deft_horovod.base.size import exact_size_text


def allowed_text(name: str, field: FieldInfo) -> str:
    """Which values it takes."""
    if field.annotation is bool:
        return "true or false (1 or 0)"
    if field.annotation is str:
        return "any text"
    words = _words(field.annotation)
    if words:
        return ", ".join(words)
    bounds = [
        value_text(name, bound.ge if isinstance(bound, annotated_types.Ge) else bound.le)
        for bound in field.metadata
        if isinstance(bound, annotated_types.Ge | annotated_types.Le)
    ]
    return " to ".join(bounds)


def value_text(name: str, value: object) -> str:
    """As a user would write it."""
    if value is None or value == "":
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if name.endswith("_bytes") and isinstance(value, int):
        return exact_size_text(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _words(annotation: Any) -> tuple[str, ...]:
    """Of an option that takes some words only."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return next((words for part in get_args(annotation) if (words := _words(part))), ())
