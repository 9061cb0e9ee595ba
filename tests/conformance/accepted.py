"""Where ours differs from Horovod's own module, and why a user can accept it.

A row is exact: the harness fails when ours gives anything else, and also when the difference is
gone. docs/conformance.md has a row for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance.programs import POLICIES


@dataclass(frozen=True)
class Difference:
    """What ours gives for some keys of an outcome; all other keys have to be equal."""

    ours: Mapping[str, Any]
    reason: str
    policies: tuple[str, ...] = POLICIES


ACCEPTED: Final[dict[str, Difference]] = {}
