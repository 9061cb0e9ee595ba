"""Ahead: a plan that is wanted soon is made by another process, while training goes on. Ours.

A plan may take seconds, in which no rank trains. Policies are pure, so a process that is told the
same makes the same plan. It gives way to everything else on its host. Where it fails, nothing is
lost but time: whoever wants the plan makes it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from typing import Final

from deft_horovod.errors import DeftError
from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request

# Modules are found where this process finds them, and the environment stays as it is.
_START: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from deft_horovod.policies import ahead; ahead.answer()"
)
# Where less time is left, the plan is seldom there when it is wanted: loading alone takes a part.
LEAST_US: Final = 2_000_000.0
# To wait for a plan; where every core is busy, the other process may get nowhere.
_LIMIT_S: Final = 5.0

_Process = subprocess.Popen[bytes]


class PlansAhead:
    """Those of one optimizer, on the rank that plans."""

    def __init__(self) -> None:
        self._open: list[_PlanWanted] = []

    def ask(self, policy: str, request: Request) -> None:
        """This plan is wanted soon."""
        if any(one.asked == (policy, request) for one in self._open):
            return
        process = _started()
        if process is not None:
            self._open.append(_PlanWanted(process, policy, request))

    def take(self, policy: str, request: Request) -> Plan | None:
        """What came of it, once it is there. None: this was not asked, or has failed."""
        for one in self._open:
            if one.asked == (policy, request):
                self._open.remove(one)
                return one.plan()
        return None

    def close(self) -> None:
        """No plan is wanted any more."""
        for one in self._open:
            one.drop()
        self._open.clear()


class _PlanWanted:
    """A thread says it to the process, since it may be larger than what a pipe holds."""

    def __init__(self, process: _Process, policy: str, request: Request) -> None:
        self.asked = policy, request
        self._process = process
        self._said = b""
        self._thread = threading.Thread(target=self._converse, daemon=True)
        self._thread.start()

    def _converse(self) -> None:
        self._said, _ = self._process.communicate(pickle.dumps(self.asked))

    def plan(self) -> Plan | None:
        self._thread.join(_LIMIT_S)
        if self._process.returncode != 0:
            self.drop()
            return None
        try:
            return Plan.from_json(self._said.decode())
        except DeftError:
            return None

    def drop(self) -> None:
        self._process.kill()


def _started() -> _Process | None:
    """A process that reads its question; None where there is none to be had."""
    if getattr(sys, "frozen", False):  # the executable is the user's program
        return None
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None


def answer() -> None:
    """In the other process: reads a question, and says the plan."""
    # Anything more urgent could keep a thread that sends waiting for milliseconds.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    from deft_horovod import policies

    policy, request = pickle.load(sys.stdin.buffer)  # noqa: S301 (from who started this)
    sys.stdout.write(policies.get(policy).plan(request).to_json())
