"""Waiting with a deadline, and saying what for."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.errors import WaitTimeoutError, explain, limited
from deft_horovod.peers import OVER_TORCH, QUEUE, stock
from deft_horovod.runtime.extension import native

_US: Final = 1e6
_SLICE_S: Final = 0.1  # between two looks at signals
# Between two looks at a message. Who looks all the time takes a core from those who move it, and at
# real-time priority never gives it back.
_PAUSE_S: Final = 0.0002


@dataclass(frozen=True)
class Waiter:
    """Waits for generations of one session."""

    session: native.Session
    names: Sequence[str]  # of the parameters, by slot
    deadline_s: float

    def wait(self, dues: Sequence[native.Due]) -> None:
        """Until all are reduced.

        Raises:
            HorovodInternalError: Horovod failed (a peer died, a shutdown): what elastic expects.
            WaitTimeoutError: the deadline passed; says who is missing.
        """
        missing = self.session.wait(list(dues), self.deadline_s)
        failure = self.session.failure()
        if failure is not None:
            raise stock.HorovodInternalError(failure)
        if missing is not None:
            raise WaitTimeoutError(self._explain(self.session.inspect(dues[missing])))

    def settle(self, limit_s: float = math.inf) -> None:
        """Until nothing is in flight, or the deadline or `limit_s` is over.

        Raises:
            HorovodInternalError: Horovod failed.
            WaitTimeoutError: the deadline passed.
        """
        began_s = time.monotonic()
        most_s = min(self.deadline_s, limit_s)
        while not self.session.wait_idle(min(_SLICE_S, most_s)):
            failure = self.session.failure()
            if failure is not None:
                raise stock.HorovodInternalError(failure)
            if time.monotonic() - began_s > most_s:
                raise WaitTimeoutError(
                    explain(
                        f"messages in flight did not arrive within {most_s:g} s",
                        rank=stock.rank(),
                        step=self.session.step,
                        observed=f"in {QUEUE}: another rank has not sent its part",
                        expected="every rank reaches this boundary",
                        action="look for the first rank that failed or is much slower",
                    )
                )

    def _explain(self, pending: native.Pending) -> str:
        tensors = [self.names[slot] for slot in self.session.slots_of(pending.bucket)]
        if pending.progress == "collecting":
            lost = [self.names[slot] for slot in pending.missing_slots]
            state = f"this rank has not computed the gradients of {limited(lost)}"
            action = "call backward() before step() on this rank"
        elif pending.progress == "held":
            state = f"ready here since {pending.waited_us / _US:.1f} s, held by {pending.held_by}"
            action = "look at what is in flight before it; if nothing is, report this as a bug"
        else:
            state = (
                f"in {QUEUE} since {pending.waited_us / _US:.1f} s: "
                "another rank has not sent its part"
            )
            action = (
                "look for the first rank that failed, is much slower, or skipped this step; "
                "raise DEFT_DEADLINE_S if it is only slow"
            )
        return explain(
            f"bucket {pending.bucket} was not reduced within {self.deadline_s:g} s",
            rank=stock.rank(),
            step=pending.last_step,
            tensor=limited(tensors),
            observed=state,
            expected="every rank sends this bucket in this step",
            action=action,
        )


def horovod_has_ended() -> bool:
    """Whether Horovod takes nothing more."""
    return not OVER_TORCH and native.horovod_has_ended()


def require_horovod() -> None:
    """Raises if Horovod takes nothing more.

    Asked before a call of Horovod's own it also keeps that from a deadlock: while it ends, Horovod
    waits for the GIL with a lock in hand, for which such a call waits with the GIL.

    Raises:
        HorovodInternalError: a peer died, or shut Horovod down.
    """
    if horovod_has_ended():
        raise stock.HorovodInternalError("Horovod has been shut down, here or on another rank")


def has_ended(ticket: native.Ticket, deadline_s: float) -> bool:
    """Sleeps until a message of ours has ended, well or not; signals get through.

    False when the deadline comes first.
    """
    ends_s = time.monotonic() + deadline_s
    while not _ends_within(ticket, max(0.0, min(_SLICE_S, ends_s - time.monotonic()))):
        if time.monotonic() >= ends_s:
            return False
    return True


def _ends_within(ticket: native.Ticket, limit_s: float) -> bool:
    try:
        ticket.wait(limit_s)
    except RuntimeError:  # the time is over
        return False
    return True


def poll_until_done(handle: int, deadline_s: float, pause_s: float = _PAUSE_S) -> bool:
    """Whether a message of Horovod's own arrived in time. Between polls, signals get through.

    Horovod's own wait has no end, and takes a core.

    Raises:
        HorovodInternalError: the message came into the queue as Horovod ended, and was forgotten.
    """
    began_s = looked_s = time.monotonic()
    ended = False
    while not stock.poll(handle):
        now_s = time.monotonic()
        if now_s - began_s > deadline_s:
            return False
        if now_s - looked_s > _SLICE_S:
            looked_s = now_s
            if ended:  # by the last look; since then all whom it knew of have been told
                require_horovod()
            ended = horovod_has_ended()
        time.sleep(pause_s)
    return True
