"""The errors of this package, and the one form that their messages take.

Every error is a :class:`DeftError` and, beside it, the built-in error that a caller would expect,
so that both ``except DeftError`` and ``except ValueError`` do what they say. Failures of Horovod
itself (a peer died, a shutdown) are not wrapped: they surface as Horovod's own exceptions, or as
``torch.distributed.DistBackendError``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_NAMED: Final = 5  # of a list of names


class DeftError(Exception):
    """Base of every error raised by this package."""


class ConfigError(DeftError, ValueError):
    """An option is unknown or has a value outside its range."""


class NotSupportedError(DeftError, ValueError):
    """A combination that this package refuses, or a call before Horovod is initialised; the message
    names the alternatives."""


class AgreementError(DeftError, RuntimeError):
    """The ranks do not agree on something that has to be equal on all of them."""


class PlanError(DeftError, ValueError):
    """A plan or a profile breaks one of its rules."""


class WaitTimeoutError(DeftError, TimeoutError):
    """A wait passed its deadline."""


class BuildMismatchError(DeftError, ImportError):
    """The compiled extension does not fit the installed Horovod or torch."""


def limited(names: Sequence[str]) -> str:
    """For a message: the first names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def explain(
    what: str,
    *,
    rank: int | None = None,
    step: int | None = None,
    tensor: str | None = None,
    observed: object = None,
    expected: object = None,
    action: str | None = None,
) -> str:
    """Builds a message: what happened, where, what was seen, what was expected, what to do.

    Parts that are ``None`` are left out, so ``explain("text")`` is ``"text"``.
    """
    place = [
        text
        for text, value in (
            (f"rank {rank}", rank),
            (f"step {step}", step),
            (f"tensor '{tensor}'", tensor),
        )
        if value is not None
    ]
    lines = [what]
    if place:
        lines.append(f"  where:    {', '.join(place)}")
    for label, value in (("observed", observed), ("expected", expected), ("action", action)):
        if value is not None:
            indented = str(value).replace("\n", "\n" + " " * 12)
            lines.append(f"  {label + ':':<9} {indented}")
    return "\n".join(lines)
