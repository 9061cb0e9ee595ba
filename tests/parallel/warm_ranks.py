"""Ranks started from processes that have imported torch, Horovod and this package before.

The imports take a rank two and a half seconds of computing, and tests start ranks by the hundred.
Here two servers do it once for a process of pytest, and a rank is a fork of one of them
(warm_server.py). They take turns by rank, as strings hash differently in each: an order that
depends on hashes shows as it does between ranks that start as usual.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from scripts.cluster.jobs import end_with_parent

_SERVERS: Final = 2
_CLIENT: Final = Path(__file__).with_name("warm_rank.py")


def interpreter(package: str, env: Mapping[str, str]) -> list[str]:
    """What to run a rank program with, in the place of Python. `package`: of ours, which it
    imports; `env`: that of the job."""
    places = _servers(package, _loaded_with(env))
    return [sys.executable, "-S", "-E", str(_CLIENT), ",".join(places)]


def _loaded_with(env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What libraries read when they are loaded."""
    names = ("OMP_NUM_THREADS", "PATH", "PYTHONPATH", "PYTHONUNBUFFERED")
    return tuple((name, env[name]) for name in names if name in env)


@functools.cache
def _servers(package: str, loaded_with: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Their sockets. They end with this process."""
    folder = Path(tempfile.mkdtemp(prefix="warm-ranks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    places = tuple(str(folder / str(number)) for number in range(_SERVERS))
    servers = [_started(place, package, dict(loaded_with)) for place in places]
    for server in servers:
        if server.stdout is None or not server.stdout.readline():
            raise RuntimeError(f"a server of warm ranks ended with {server.wait()}")
    return places


def _started(place: str, package: str, loaded_with: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.parallel.warm_server", place, package],
        env={**os.environ, **loaded_with},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=end_with_parent,  # noqa: PLW1509  (one call into the kernel, no locks)
    )
