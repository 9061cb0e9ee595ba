"""The vote on a new plan: which rank wants one, and whether all know.

A rank that wants everything to be measured again goes on asking, in the headers of its gradients,
until all ranks have read the request; then all turn at the same boundary. A phase that has
run its steps ends without being asked for, on all ranks alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from deft_horovod.runtime.ranks.agreement import Agreement


class State(IntEnum):
    """What all ranks know of a new plan; later ones include those before."""

    QUIET = 0
    PHASE_OVER = 1  # it is due because what runs has run its steps
    ASKED = 2  # it is due because a rank has asked


@dataclass(frozen=True)
class Reason:
    """Why ranks plan anew."""

    asked: bool  # by a rank, whatever it wants
    again: bool  # everything has to be measured again; else only who may be late has changed


class ReplanVote:
    """Of one optimizer."""

    def __init__(self) -> None:
        self.state = State.QUIET
        self._wants = False  # this rank wants everything to be measured again

    @property
    def due(self) -> bool:
        """Whether a new plan is wanted at this boundary, on all ranks alike."""
        return self.state is not State.QUIET

    def want(self) -> None:
        """This rank wants everything to be measured again."""
        self._wants = True

    def move(self, state: State) -> None:
        """All ranks have seen this."""
        self.state = max(self.state, state)

    def count(self, agreement: Agreement) -> Reason:
        """All ranks are here to plan anew; the next vote begins."""
        asked, wants = self.state is State.ASKED, self._wants
        self.clear()
        # Who wants it asks in headers that are read a boundary later; a phase may end before.
        again = any(agreement.union([wants]))
        return Reason(asked or again, again)

    def clear(self) -> None:
        """The vote begins anew."""
        self.withdraw()
        self._wants = False

    def withdraw(self) -> None:
        """What others have said is void; what this rank wants is not."""
        self.state = State.QUIET
