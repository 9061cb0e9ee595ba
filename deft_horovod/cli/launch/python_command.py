"""``python [options] train.py arguments``: a command that runs a script, and its parts."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from deft_horovod.job.user_script import problem_with

_PYTHON: Final = re.compile(r"python(\d+(\.\d+)*)?")
_WITH_VALUE: Final = ("-W", "-X")
_NOT_A_SCRIPT: Final = ("-c", "-")


@dataclass(frozen=True)
class PythonCommand:
    """What runs, and with what."""

    interpreter: str
    options: tuple[str, ...]  # of the interpreter
    words: tuple[str, ...]  # the script or ``-m module``, with its arguments

    @classmethod
    def parse(cls, words: Sequence[str]) -> PythonCommand:
        """Raises click.UsageError unless this runs a script or module that is there."""
        interpreter, rest = _interpreter(list(words))
        options: list[str] = []
        while rest and rest[0].startswith("-") and rest[0] not in ("-m", *_NOT_A_SCRIPT):
            length = 2 if rest[0] in _WITH_VALUE else 1
            options += rest[:length]
            rest = rest[length:]
        if not rest or rest[0] in _NOT_A_SCRIPT:
            raise click.UsageError(
                "what is to be profiled has to be a script or a module: "
                "deft-profile run -- python train.py"
            )
        problem = problem_with(rest)
        if problem is not None:
            raise click.UsageError(problem)
        return cls(interpreter, tuple(options), tuple(rest))

    @property
    def name(self) -> str:
        """Of the script or module, for people."""
        return self.words[1] if self.words[0] == "-m" else Path(self.words[0]).name

    def under(self, modules: Sequence[str], *arguments: str) -> list[str]:
        """The command that has a module run it, or the first module have the second do so."""
        return [self.interpreter, *self.options, "-m", *modules, *arguments, "--", *self.words]


def _interpreter(words: list[str]) -> tuple[str, list[str]]:
    first = Path(words[0])
    if not _PYTHON.fullmatch(first.name):
        if first.suffix == ".py" or words[0] == "-m":
            return sys.executable, words
        raise click.UsageError(
            f"{words[0]} is no Python script; write: deft-profile run [-np N] -- python train.py"
        )
    if first.name == words[0]:  # the one that has this package
        return sys.executable, words[1:]
    if shutil.which(words[0]) is None:
        raise click.UsageError(f"there is no interpreter {words[0]}")
    return words[0], words[1:]
