"""One rank of a script of which something is asked: runs it, answers, and says how it ended.

It ends with status 0 once the answer is written, with the script's own status where that fails, and
with 1 if the script ends too early.
"""

from __future__ import annotations

import abc
import argparse
import logging
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Generic

import click

from deft_horovod.base.size import size_text
from deft_horovod.config import Config
from deft_horovod.job import user_script as script
from deft_horovod.job.exit_report import ExitReport, tell_progress
from deft_horovod.job.result_file import write
from deft_horovod.runtime.job_request import Answer, AskedOptimizer, JobRequest
from deft_horovod.runtime.job_request import Answered as ScriptOver
from deft_horovod.runtime.process import this_process

_PROGRESS_S: Final = 0.2
_INTERRUPTED: Final = 130
_NOT_THE_SCRIPTS: Final = (__file__, script.__file__, "<frozen runpy>", "runpy.py")

Deliver = Callable[[AskedOptimizer[Answer], Answer], str]
Progress = Callable[[int, int], None]


class RankScript(abc.ABC, Generic[Answer]):
    """The script, and how it ends."""

    what: ClassVar[str]  # is asked: 'profile'

    def __init__(self, options: argparse.Namespace, words: list[str]) -> None:
        self._words = words
        self._output: Path = options.output
        self._folder: Path | None = options.folder
        self._rank = Config.launched_rank() or 0
        self._told_s = 0.0
        self._problem = ""
        self._status = 0  # the script's own
        self._request = self.request(options, self._deliver, self._tell_progress)

    @abc.abstractmethod
    def request(
        self, options: argparse.Namespace, deliver: Deliver[Answer], progress: Progress
    ) -> JobRequest[Answer]:
        """What is asked of the script."""

    @abc.abstractmethod
    def answered(self, main: AskedOptimizer[Answer], others: list[AskedOptimizer[Answer]]) -> str:
        """The answer is written: what it is about, for people."""

    def refused(self, asked: AskedOptimizer[Answer], answer: Answer) -> str:  # noqa: ARG002
        """Why this is no answer, if so."""
        return ""

    @property
    def nothing(self) -> str:
        """The end of every line that says why there is no answer."""
        return f"; no {self.what} was written"

    def run(self) -> int:
        """The exit status of this process."""
        script.substitute()
        this_process().job_request = self._request
        outcome = self._run()
        if self._folder is not None:
            outcome.leave(self._folder, self._rank)
            return self._status
        if outcome.message:
            print(f"deft-profile: {outcome.message}", file=sys.stderr, flush=True)
        return outcome.status

    def _run(self) -> ExitReport:
        if self._rank == 0:
            self._tell_progress(0, self._request.needed_steps)
        try:
            script.run(self._words)
        except ScriptOver:
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
            return self._over()
        return self._too_few()

    def _failed(self, status: int, how: str) -> ExitReport:
        self._status = status
        return ExitReport(status, f"{self._where()} {how}{self.nothing}")

    def _over(self) -> ExitReport:
        if self._rank:
            return ExitReport(0, "")
        if self._problem:
            return ExitReport(1, self._problem)
        main, *others = sorted(self._request.asked_optimizers, key=lambda s: -s.gradient_bytes)
        return ExitReport(0, self.answered(main, others))

    def _too_few(self) -> ExitReport:
        if self._rank:
            # Rank 0 says it for all. With an error here the launcher would stop it before it can.
            return ExitReport(0, "")
        needed = f"{self._request.needed_steps} are needed ({self._request.needs})"
        if self._request.main is None:
            return ExitReport(
                1,
                f"{self._name} ended without a step of an optimizer; {needed}. On several ranks "
                "only hvd.DistributedOptimizer is seen, on one every torch optimizer"
                f"{self.nothing}",
            )
        advice = "let it train longer, or ask for fewer with --steps"
        return ExitReport(1, f"{self._where()} ended; {needed}: {advice}{self.nothing}")

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

    def _deliver(self, asked: AskedOptimizer[Answer], answer: Answer) -> str:
        """Writes the answer; what went wrong, if anything did."""
        if self._rank:
            return ""  # it trains alone, beside others that do; the lowest rank's answer counts
        self._problem = self.refused(asked, answer)
        if not self._problem:
            try:
                write(self._output, answer.to_json() + "\n")
            except click.ClickException as error:
                self._problem = error.message
        return self._problem


def subject_text(asked: AskedOptimizer[Any]) -> str:
    """An optimizer, for people."""
    return f"{asked.kind} ({asked.tensors} tensors, {size_text(asked.gradient_bytes)} of gradients)"


def options_and_words(
    description: str | None, arguments: list[str], **more: type[Any]
) -> tuple[argparse.Namespace, list[str]]:
    """The options of the process that started this rank, and the script with its arguments."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--folder", type=Path)
    for name, kind in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind)
    logging.getLogger("deft_horovod").setLevel(logging.ERROR)
    end = arguments.index("--")
    return parser.parse_args(arguments[:end]), arguments[end + 1 :]


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
