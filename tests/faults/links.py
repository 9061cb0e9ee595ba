"""Links that stop carrying: two hosts made of network namespaces, and a cable that is pulled."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from scripts.cluster import cluster
from tests.faults.jobs import SCRIPTS, environment
from tests.faults.scripts.draw import RANKS
from tests.parallel import launch

RATE_MBIT: Final = 500
STALL_S, PAUSE_S = 1.0, 2.0


def why_not() -> str | None:
    """Why there can be no hosts here."""
    try:
        cluster.require_tools()
    except cluster.ClusterError as error:
        return str(error)
    return None


def pull(carries: bool) -> None:
    """The cable of the second host, at the switch: what is sent is lost, nobody is told."""
    (switch, port), _ = cluster.cable_ends(0, RANKS)
    cluster.run(f"ip -n {switch} link set {port} {'up' if carries else 'down'}")


def stalling(folder: Path, over: threading.Event) -> None:
    """The link is dead for a second, again and again, once training runs."""
    while not any(folder.glob("rank.*.json")):
        if over.wait(0.1):
            return
    while not over.wait(PAUSE_S):
        pull(carries=False)
        over.wait(STALL_S)
        pull(carries=True)


def losing(folder: Path, over: threading.Event) -> None:
    """The link is gone, until the job is over in the eyes of its ranks."""
    while not any(folder.glob("ready.[0-9]")):
        if over.wait(0.05):
            return
    pull(carries=False)
    (folder / "fault.tmp").write_text(repr(time.time()))
    (folder / "fault.tmp").replace(folder / "fault")
    # horovodrun, too, hears of the end of the other host over this link.
    over.wait(60.0)
    pull(carries=True)


@contextmanager
def _beside(action: Callable[[], None], over: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(70)


def run_on_hosts(
    program: str,
    disturb: Callable[[Path, threading.Event], None],
    given: Any,
    limit_s: float,
    **more: str,
) -> launch.Result:
    """A rank program on two hosts, while something happens to their link."""
    mark = uuid.uuid4().hex
    over = threading.Event()
    with (
        cluster.standing(RANKS, RATE_MBIT),
        tempfile.TemporaryDirectory(prefix="parallel-") as name,
    ):
        folder = Path(name)
        variables = launch._environment(environment(more), folder, mark, given)
        command = [sys.executable, str(SCRIPTS / program)]
        words, variables = cluster.job(RANKS, command, variables)
        began_s = time.monotonic()
        with _beside(lambda: disturb(folder, over), over):
            status, output, hung = launch._run(words, limit_s, variables, mark)
        results = [launch._read(folder / f"rank.{rank}.json") for rank in range(RANKS)]
        spent_s = time.monotonic() - began_s
    result = launch.Result(status, {}, results, output, spent_s)
    if hung:
        raise launch.JobHungError(f"no end within {limit_s:g} s\n{output[-3000:]}", result)
    return result
