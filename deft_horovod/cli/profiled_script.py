"""One rank of a script whose profile is wanted: ``python -m`` this, ``--``, and the script.

``deft-profile run`` starts it. It ends with status 0 once the profile is written, with the script's
own status where that fails, and with 1 if the script ends too early.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import click

from deft_horovod import script
from deft_horovod.cli.outcome import Outcome, tell_progress
from deft_horovod.cli.output import write
from deft_horovod.config import Config
from deft_horovod.profile import Profile
from deft_horovod.runtime.optimizer_watch import OptimizerWatch
from deft_horovod.runtime.profile_request import ProfileRequest, ProfileTaken, Subject
from deft_horovod.runtime.world import world
from deft_horovod.size import size_text

_PROGRESS_S: Final = 0.2
_INTERRUPTED: Final = 130
_NOT_THE_SCRIPTS: Final = (__file__, script.__file__, "<frozen runpy>", "runpy.py")


class ProfiledScript:
    """The script, and how it ends."""

    def __init__(self, options: argparse.Namespace, words: list[str]) -> None:
        self._words = words
        self._output: Path = options.output
        self._folder: Path | None = options.folder
        self._rank = Config.launched_rank() or 0
        self._told_s = 0.0
        self._problem = ""
        self._status = 0  # the script's own
        self._request = ProfileRequest(
            options.warmup, options.steps, self._deliver, self._tell_progress
        )

    def run(self) -> int:
        """The exit status of this process."""
        script.substitute()
        world().profile_request = self._request
        watch = OptimizerWatch(self._request)
        try:
            outcome = self._run()
        finally:
            watch.close()
        if self._folder is not None:
            outcome.leave(self._folder, self._rank)
            return self._status
        if outcome.message:
            print(f"deft-profile: {outcome.message}", file=sys.stderr, flush=True)
        return outcome.status

    def _run(self) -> Outcome:
        if self._rank == 0:
            self._tell_progress(0, self._request.needed_steps)
        try:
            script.run(self._words)
        except ProfileTaken:
            pass
        except KeyboardInterrupt:
            return self._failed(_INTERRUPTED, "was interrupted")
        except SystemExit as end:
            status = _status_of(end.code)
            if status and not self._request.over:
                return self._failed(status, f"ended with status {status}")
        except BaseException as error:  # noqa: BLE001  (as Python itself shows it)
            shown = _of_script(error.__traceback__)
            traceback.print_exception(type(error), error, shown)
            if not self._request.over:
                return self._failed(1, f"failed: {type(error).__name__}")
        if self._request.over:
            return self._taken()
        return self._too_few()

    def _failed(self, status: int, how: str) -> Outcome:
        self._status = status
        return Outcome(status, f"{self._where()} {how}{_NOTHING}")

    def _taken(self) -> Outcome:
        if self._rank:
            return Outcome(0, "")
        if self._problem:
            return Outcome(1, self._problem)
        main, *others = sorted(self._request.subjects, key=lambda s: -s.gradient_bytes)
        beside = "; not of the smaller " + ", ".join(map(_words, others)) if others else ""
        return Outcome(0, f"this is the profile of {_words(main)}{beside}")

    def _too_few(self) -> Outcome:
        if self._rank:
            # Rank 0 says it for all. With an error here the launcher would stop it before it can.
            return Outcome(0, "")
        needed = (
            f"{self._request.needed_steps} are needed ({self._request.warmup_steps} to warm up, "
            f"{self._request.steps} to measure)"
        )
        if self._request.main is None:
            return Outcome(
                1,
                f"{self._name} ended without a step of an optimizer; {needed}. On several ranks "
                f"only hvd.DistributedOptimizer is seen, on one every torch optimizer{_NOTHING}",
            )
        advice = "let it train longer, or ask for fewer with --steps"
        return Outcome(1, f"{self._where()} ended; {needed}: {advice}{_NOTHING}")

    @property
    def _name(self) -> str:
        return self._words[1] if self._words[0] == "-m" else Path(self._words[0]).name

    def _where(self) -> str:
        main = self._request.main
        steps = 0 if main is None else main.steps
        on_rank = "" if Config.launched_rank() is None else f"on rank {self._rank}, "
        return f"{on_rank}after {steps} step{'' if steps == 1 else 's'}, {self._name}"

    def _tell_progress(self, done: int, needed: int) -> None:
        now_s = time.monotonic()
        if self._folder is None or self._rank:
            return
        if done < needed and now_s < self._told_s + _PROGRESS_S:
            return
        self._told_s = now_s
        tell_progress(self._folder, done, needed)

    def _deliver(self, subject: Subject, profile: Profile) -> str:
        """Writes the profile; what went wrong, if anything did."""
        if self._rank:
            return ""  # it trains alone, beside others that do; the lowest rank's profile counts
        if not profile.steps:
            self._problem = (
                f"no step of {_words(subject)} could be measured: backward() has to give each of "
                f"its gradients equally often in every step{_NOTHING}"
            )
            return self._problem
        try:
            write(self._output, profile.to_json() + "\n")
        except click.ClickException as error:
            self._problem = error.message
        return self._problem


_NOTHING: Final = "; no profile was written"


def _words(subject: Subject) -> str:
    return (
        f"{subject.kind} ({subject.tensors} tensors, {size_text(subject.gradient_bytes)} of "
        "gradients)"
    )


def _status_of(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _of_script(trace: TracebackType | None) -> TracebackType | None:
    """Without the frames that started it."""
    while trace is not None and trace.tb_frame.f_code.co_filename.endswith(_NOT_THE_SCRIPTS):
        trace = trace.tb_next
    return trace


def main(arguments: list[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path)
    logging.getLogger("deft_horovod").setLevel(logging.ERROR)
    end = arguments.index("--")
    return ProfiledScript(parser.parse_args(arguments[:end]), arguments[end + 1 :]).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
