"""horovodrun, started from a process that has loaded it and torch before.

Each horovodrun imports ``horovod.torch`` twice in children of its own, only to find out what it was
built with: three seconds of computing for each job. Here a server does it once, and every job is a
fork of it that runs horovodrun's own entry point. Ranks are started by that as ever.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import PurePath

from scripts.cluster.jobs import end_with_parent


@functools.cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "horovod.torch", "horovod.runner.launch"])
    return context


def start(command: Sequence[str], env: Mapping[str, str], output: str) -> ForkServerProcess:
    """A command in a session of its own, whose output goes to a file. The server helps horovodrun
    itself; any other command, such as one for other hosts, starts as usual."""
    process = _server().Process(target=_launch, args=(list(command), dict(env), output))
    process.start()
    return process


def _launch(command: list[str], env: dict[str, str], output: str) -> None:
    os.setsid()
    end_with_parent()  # which is the server, and that ends with the tests
    descriptor = os.open(output, os.O_WRONLY | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    if PurePath(command[0]).name != "horovodrun":
        os.execvpe(command[0], command, env)  # noqa: S606  (a fixed list of words)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = command
    from horovod.runner.launch import run_commandline

    sys.exit(run_commandline())
