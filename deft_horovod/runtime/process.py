"""What all optimizers of a process share, because Horovod has one queue per process.

Names in that queue must be unique among the optimizers of a job and the same on all ranks. They are
numbered in the order in which the optimizers agree with their peers. Numbers are never given twice,
not even after a reset of Horovod (elastic): its queue may still hold a message from before, which
would then be taken for the new one of that name.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import sys
import time
import weakref
from collections import Counter
from pathlib import Path
from typing import Any, Final, Protocol

from deft_horovod.config import Config
from deft_horovod.peers import stock
from deft_horovod.runtime.job_request import JobRequest
from deft_horovod.runtime.metrics.recorder import Recorder, recorder_to
from deft_horovod.runtime.ranks.agreement import Agreement, largest
from deft_horovod.runtime.reduce.planned import PlannedReducer
from deft_horovod.runtime.trace.file import TraceFile

_LOG: Final = logging.getLogger("deft_horovod")
_LEAVE_S: Final = 30.0  # for what others have not sent by then


class Reducing(Protocol):
    """What a process asks of its engines."""

    number: int | None

    @property
    def process_set_id(self) -> int:
        """Of the ranks that reduce together."""

    @property
    def unapplied(self) -> int:
        """How many generations are on their way."""

    def settle(self, limit_s: float) -> None:
        """The others get our part of what is on its way."""

    def show_state(self) -> None:
        """What gates hold is applied."""

    def depart(self) -> None:
        """This rank goes into ``join()``."""

    def rejoin(self) -> None:
        """All ranks have come out of ``join()``."""

    def forget(self) -> None:
        """Horovod is new."""


class Process:
    """The numbering of optimizers, the engines that are alive, who wants an answer of the job."""

    def __init__(self) -> None:
        self.engines: weakref.WeakSet[Reducing] = weakref.WeakSet()
        self.job_request: JobRequest[Any] | None = None
        self._inherited: list[PlannedReducer] = []  # of engines that are gone
        self._unapplied = 0  # generations of such engines
        self._trace_file: TraceFile | None = None
        self._recorders = 0
        self._taken: Counter[int] = Counter()  # by process set
        self._watches_forks = False

    def take_number(self, process_set_id: int, agreement: Agreement) -> int:
        """The next number in the namespace of a process set that none of its ranks has used."""
        self._inherited = [reducer for reducer in self._inherited if not reducer.idle]
        number = int(*largest(agreement, [self._taken[process_set_id]]))
        self._taken[process_set_id] = number + 1
        if not self._watches_forks:  # which cannot be taken back
            self._watches_forks = True
            os.register_at_fork(before=self._before_fork)
        # What is registered last is called first: before Horovod, which was initialised before.
        atexit.unregister(self._exit)
        atexit.register(self._exit)
        return number

    def trace_file(self, folder: str, rank: int) -> TraceFile:
        """The one of this process."""
        if self._trace_file is None:
            elastic = Config.elastic()
            self._trace_file = TraceFile(Path(folder), rank, may_exist=elastic)
        return self._trace_file

    def recorder(self, config: Config) -> Recorder | None:
        """Who writes the metrics of the next optimizer; None: nobody is asked to."""
        if not config.metrics or stock.rank() != 0:
            return None
        found = recorder_to(config.metrics, config.metrics_steps, self._recorders)
        self._recorders += 1
        return found

    def in_order(self) -> list[Reducing]:
        """The engines that have agreed with their peers, in the same order on all ranks."""
        agreed = [engine for engine in self.engines if engine.number is not None]
        return sorted(agreed, key=lambda engine: (engine.process_set_id, engine.number or 0))

    def inherit(self, reducer: PlannedReducer, unapplied: int, *, in_step: bool) -> None:
        """An engine is gone, and so many generations with it; in the middle of a step others may
        never send their part."""
        self._unapplied += unapplied
        reducer.abandon()
        self._inherited = [other for other in self._inherited if not other.idle]
        if not in_step and not reducer.idle:
            self._inherited.append(reducer)

    def leave(self) -> None:
        """This rank is about to shut Horovod down. It may be ahead of others, which still need its
        part of what both have on their way; says who forgot to flush."""
        if stock.is_initialized():
            until_s = time.monotonic() + _LEAVE_S
            unsettled: list[Reducing | PlannedReducer] = [*self.in_order(), *self._inherited]
            for one in unsettled:
                _settle(one, max(0.0, until_s - time.monotonic()))
        unapplied = self._unapplied + sum(engine.unapplied for engine in self.engines)
        self._unapplied = 0
        if unapplied:
            _LOG.warning(
                "deft_horovod: %d gradients of the last steps were never applied: call "
                "optimizer.flush() at the end of training",
                unapplied,
            )

    def _before_fork(self) -> None:
        """A child gets no messages: what gates hold is applied while it still can be."""
        for engine in self.engines:
            engine.show_state()

    def _exit(self) -> None:
        if not hasattr(sys, "last_value"):  # else an error ends this rank, and thereby the others
            self.leave()

    def renew(self) -> None:
        """Horovod was initialised anew: nothing that was agreed before holds any more."""
        self._inherited.clear()
        for engine in self.engines:
            engine.forget()


def _settle(one: Reducing | PlannedReducer, limit_s: float) -> None:
    try:
        one.settle(limit_s)
    except Exception as error:  # noqa: BLE001  one that fails must not keep others from theirs
        _LOG.warning("deft_horovod: updates that were on their way are lost: %s", error)


@functools.cache
def this_process() -> Process:
    """What the optimizers of this process share."""
    return Process()
