"""The file into which one rank writes its trace, step by step."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable
from pathlib import Path

from deft_horovod.base.trace import Event, lines_of
from deft_horovod.errors import ConfigError, explain


class TraceFile:
    """One for each process, whatever the number of its optimizers."""

    def __init__(self, folder: Path, rank: int, *, may_exist: bool = False) -> None:
        """`may_exist`: an elastic worker may follow another one of the same rank."""
        self.path = folder / f"rank.{rank}.json"
        if self.path.exists() and not may_exist:
            raise ConfigError(
                explain(
                    "the folder of the trace already has one",
                    rank=rank,
                    observed=str(self.path),
                    action="give DEFT_TRACE another folder, or delete the old trace",
                )
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                explain(
                    f"the trace cannot be written to {self.path}",
                    rank=rank,
                    observed=error.strerror or error,
                    action="give DEFT_TRACE a folder that can be written on every machine",
                )
            ) from None
        if self._file.tell() == 0:
            self._file.write("[\n")
        weakref.finalize(self, _close, self._file)

    def write(self, events: Iterable[Event]) -> None:
        """To the disk: what comes later may be the end of the process."""
        self._file.write(lines_of(events))
        self._file.flush()


def _close(file: contextlib.AbstractContextManager[object]) -> None:
    with file:
        pass
