"""Records: immutable data with a canonical JSON form, such as plans and profiles.

Equal records have equal text and therefore equal hashes on every machine, which is how ranks find
out whether they agree.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import Self

from deft_horovod.errors import PlanError, explain

# The executor holds indices and steps in 32 bits, element and byte counts in 64.
Index = Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)]
Count = Annotated[int, Field(strict=True, ge=0, le=2**63 - 1)]
Name = Annotated[str, Field(min_length=1)]
Flag = Annotated[bool, Field(strict=True)]
Microseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Part(BaseModel):
    """A piece of a record: frozen, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Record(Part):
    """A whole record. Whatever is wrong with it is reported as a PlanError."""

    # Versions whose fields mean the same here: the newer ones only add some.
    readable: ClassVar[tuple[int, ...]] = ()

    # Hidden from type checkers, which then keep the constructor generated from the fields.
    if not TYPE_CHECKING:

        def __init__(self, **fields: Any) -> None:
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise PlanError(_first_problem(type(self).__name__.lower(), error)) from None

    def to_json(self) -> str:
        """The canonical form: sorted keys, no spaces."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        what = cls.__name__.lower()
        try:
            fields = json.loads(text)
        except json.JSONDecodeError as error:
            raise PlanError(explain(f"the text of a {what} is not JSON", observed=error)) from None
        if not isinstance(fields, dict):
            raise PlanError(
                explain(
                    f"the text of a {what} is JSON of the wrong kind",
                    observed=type(fields).__name__,
                    expected=f"an object with the fields {', '.join(cls.model_fields)}",
                )
            )
        if fields.get("version") in cls.readable:
            del fields["version"]
        foreign = cls._why_foreign(fields)
        if foreign is not None:
            raise PlanError(foreign)
        return cls(**fields)

    @classmethod
    def _why_foreign(cls, fields: dict[str, Any]) -> str | None:
        """Whether this is something else, or of another version: then its fields mean nothing."""
        what = cls.__name__.lower()
        needed = [name for name, field in cls.model_fields.items() if field.is_required()]
        if needed and not any(name in fields for name in needed):
            return explain(
                f"this JSON is not a {what}",
                observed=f"the fields {', '.join(sorted(fields)) or '(none)'}"[:200],
                expected=f"at least the fields {', '.join(needed)}",
                action=f"name the file of a {what}",
            )
        version = cls.model_fields.get("version")
        if version is None or fields.get("version", version.default) == version.default:
            return None
        return explain(
            f"this {what} has the format of another version",
            observed=f"version {fields['version']!r}",
            expected=f"version {version.default}",
            action=f"make the {what} anew; other versions are not converted",
        )

    def hash(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a file; an error names it."""
        what = cls.__name__.lower()
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise PlanError(
                explain(f"the file {path} is not a {what}: it is not text", observed=error)
            ) from None
        except OSError as error:
            raise PlanError(
                explain(
                    f"the {what} in file {path} cannot be read",
                    observed=error.strerror or error,
                    expected=f"a file that was written by {cls.__name__}.save()",
                )
            ) from None
        except PlanError as error:
            raise PlanError(f"file {path}: {error}") from None


def _first_problem(what: str, error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    if problem["type"] == "value_error":  # one of our own rules: already a whole message
        return str(problem["ctx"]["error"])
    place = ".".join(str(part) for part in problem["loc"])
    return explain(
        f"a {what} is not well formed: field '{place}': {problem['msg']}",
        observed=repr(problem["input"])[:200],
        action=f"correct the field, or make the {what} anew",
    )
