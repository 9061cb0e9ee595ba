"""Jobs that a fault ends: everybody has to end, in time, with an error that says why."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.faults import links
from tests.faults.elastic import HOW, run_elastic
from tests.faults.jobs import SCRIPTS, environment, outcomes_of
from tests.faults.scripts.draw import RANKS
from tests.faults.scripts.draw_fatal import Fatal
from tests.parallel.launch import JobHungError, Result, run_ranks

DEADLINE_S: Final = 5.0
MARGIN_S: Final = 8.0  # beyond limits, as the machine does other things as well
GLOO_S: Final = 10.0  # what Horovod's shutdown may wait for, if its thread is in a collective
LIMIT_S: Final = 60.0
BEGIN_S: Final = 60.0
CRASHES: Final = ("terminate called", "Segmentation fault", "core dumped", "double free")
REASONS: Final = ("HorovodInternalError", "WaitTimeoutError")
LINKS: Final = ("link stalls", "link lost")
STOPPED: Final = ("stopped too long", "never begins")
# What the rank with the fault ends with, where the fault is its own end.
_STATUS: Final = {"killed": -signal.SIGKILL, "exit in the middle": 3, "ended early": 0}


@dataclass(frozen=True)
class Ended:
    """How the job of a seed has ended."""

    fatal: Fatal
    troubles: tuple[str, ...]
    error_s: float  # from the fault to the last rank's error
    end_s: float  # and to its end

    @property
    def command(self) -> str:
        """Repeats it."""
        return f".venv/bin/python -m scripts.faults.campaign --fatal {self.fatal.seed}"

    def text(self) -> str:
        said = "\n".join(self.troubles)
        title = self.fatal.title()
        return f"{title}\nseed {self.fatal.seed} failed; repeat with\n  {self.command}\n{said}"


def why_not(fatal: Fatal) -> str | None:
    """Why this one is not possible on this machine."""
    return links.why_not() if fatal.kind in LINKS else None


def run_fatal(fatal: Fatal) -> Ended:
    """The job of one fault, and all that is wrong with how it ended."""
    began_s = time.monotonic()
    if fatal.kind in HOW:
        wrong = run_elastic(fatal)
        return Ended(fatal, tuple(wrong), 0.0, time.monotonic() - began_s)
    try:
        if fatal.kind == "link stalls":
            wrong = _over_a_link_that_stalls(fatal)
            return Ended(fatal, tuple(wrong), 0.0, time.monotonic() - began_s)
        return _ended(fatal, _run(fatal))
    except JobHungError as error:
        return Ended(fatal, (str(error),), 0.0, time.monotonic() - began_s)


def _over_a_link_that_stalls(fatal: Fatal) -> list[str]:
    """Trainings with all their checks; what is lost for a second comes again."""
    seeds = fatal.trainings()
    limit_s = 90 + 30 * len(seeds)
    given = {"seeds": seeds}
    result = links.run_on_hosts("campaign_ranks.py", links.stalling, given, limit_s)
    found = outcomes_of(result)
    wrong = [outcome.text() for outcome in found if outcome.troubles]
    missing = sorted(set(seeds) - {outcome.seed for outcome in found})
    return [*wrong, f"seeds {missing} did not run:\n{result.output[-2000:]}"] if missing else wrong


def _run(fatal: Fatal) -> Result:
    given = {
        "program": "fatal_ranks.py",
        "seed": fatal.seed,
        "deadline_s": DEADLINE_S,
        "begin_s": BEGIN_S,
        "limit_s": LIMIT_S,
    }
    more = {"DEFT_DEADLINE_S": f"{DEADLINE_S:g}", "HOROVOD_GLOO_TIMEOUT_SECONDS": f"{GLOO_S:g}"}
    limit_s = BEGIN_S + LIMIT_S + 20
    if fatal.kind == "link lost":
        return links.run_on_hosts("watched_ranks.py", links.losing, given, limit_s + 60, **more)
    program, env = SCRIPTS / "watched_ranks.py", environment(more)
    return run_ranks(program, RANKS, timeout_s=limit_s, options=given, env=env)


def _ended(fatal: Fatal, job: Result) -> Ended:
    troubles: list[str] = []
    for rank, found in enumerate(job.results):
        if found is None:
            troubles.append(f"rank {rank} reported nothing:\n{job.output[-2000:]}")
            continue
        wrong = _wrong(fatal, rank, found)
        if wrong:
            troubles += [f"rank {rank}: {line}" for line in wrong]
            troubles.append(f"rank {rank} said:\n{found['output'][-1500:]}")
    error_s, end_s = (
        max((found[key] or 0.0 for found in job.results if found), default=0.0)
        for key in ("error_after_s", "after_s")
    )
    return Ended(fatal, tuple(troubles), error_s, end_s)


def _wrong(fatal: Fatal, rank: int, found: Mapping[str, Any]) -> list[str]:
    if not found["fault_seen"]:
        return [f"the fault never happened; status {found['status']}"]
    wrong = [f"a process is left behind: {left}" for left in found["left"]]
    wrong += [f"crashed: {crash}" for crash in CRASHES if crash in found["output"]]
    if found["hung"]:
        return [*wrong, f"did not end within {LIMIT_S:g} s"]
    stopped_s = 2.5 * DEADLINE_S if fatal.kind in STOPPED and rank == fatal.rank else 0.0
    for what, seen_s, limit_s in (
        ("met its error", found["error_after_s"] or 0.0, DEADLINE_S + MARGIN_S + stopped_s),
        ("ended", found["after_s"], DEADLINE_S + GLOO_S + MARGIN_S + stopped_s),
    ):
        if seen_s > limit_s:
            wrong.append(f"{what} {seen_s:.1f} s after the fault, more than {limit_s:g}")
    if rank == fatal.rank and fatal.kind not in (*STOPPED, *LINKS):
        return wrong + _wrong_end(fatal, found)
    if found["status"] == 0:
        wrong.append("ended with status 0, as if nothing had happened")
    if not any(reason in found["output"] for reason in REASONS):
        wrong.append(f"its error is none of {', '.join(REASONS)}")
    return wrong


def _wrong_end(fatal: Fatal, found: Mapping[str, Any]) -> list[str]:
    """Of the rank that had the fault."""
    expected = _STATUS.get(fatal.kind)
    if fatal.kind.startswith("killed"):
        expected = -signal.SIGKILL
    if expected is not None:
        same = found["status"] == expected
        return [] if same else [f"ended with status {found['status']}, not {expected}"]
    name = "KeyboardInterrupt" if fatal.kind == "interrupted" else "the planned fault"
    wrong = [] if found["status"] else ["ended with status 0"]
    return wrong if name in found["output"] else [*wrong, f"did not say '{name}'"]
