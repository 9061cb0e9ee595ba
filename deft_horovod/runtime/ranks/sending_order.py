"""The order in which messages leave where they meet those of other ranks by order alone."""

from __future__ import annotations

from collections.abc import Sequence


class SendingOrder:
    """Each message leaves as soon as it is ready and all before it have left."""

    def __init__(self, order: Sequence[int]) -> None:
        self._order = tuple(order)
        self.restart()

    def restart(self) -> None:
        """From the first one."""
        self._come: set[int] = set()
        self._left = 0

    def ready(self, index: int) -> list[int]:
        """This one is ready; those that leave now."""
        self._come.add(index)
        began = self._left
        while self._left < len(self._order) and self._order[self._left] in self._come:
            self._left += 1
        return list(self._order[began : self._left])
