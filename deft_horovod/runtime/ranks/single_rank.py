"""Agreement of one rank with itself, without Horovod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deft_horovod.runtime.ranks.agreement import Agreement


class SingleRank(Agreement):
    """The only rank: whatever it says is agreed."""

    def __init__(self) -> None:
        super().__init__(None, 0.0)

    def everyone_here(self) -> bool:
        """It is."""
        return True

    def require_equal(self, facts: Mapping[str, Any]) -> None:
        """There is no other rank that could differ."""

    def collect(self, text: str) -> list[str]:
        """What this rank says."""
        return [text]

    def share(self, text: str | None) -> str:
        """What this rank passes in."""
        return "" if text is None else text

    @property
    def decider(self) -> int:
        """This rank."""
        return 0

    @property
    def rank(self) -> int:
        """This rank."""
        return 0
