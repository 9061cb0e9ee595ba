"""Faults from outside that a training survives: stopped processes, late ranks, forked children."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
import warnings
from collections.abc import Callable
from typing import Final

import torch
from party import Party
from torch.utils.data import DataLoader, TensorDataset

PATIENCE_S: Final = 8.0


def disturb(kind: str, party: Party, step: int) -> None:
    """One fault on this rank; `kind` is one of draw.FAULTS."""
    r = random.Random(f"disturb {party.script.seed} {step}")
    if kind == "stop":
        stop_soon(r.uniform(0.0, 0.05), r.uniform(0.1, 0.5))
    elif kind == "late rank":
        time.sleep(r.uniform(0.05, 0.4))
    elif kind == "fork that evaluates":
        in_a_child(lambda: party.evaluate(step))
    elif kind == "fork that loads data":
        data = DataLoader(TensorDataset(torch.arange(6.0)), batch_size=2, num_workers=1, timeout=20)
        seen = sum(float(batch.sum()) for (batch,) in data)
        if seen != 15.0:
            raise AssertionError(f"a worker process loaded {seen}, not 15")
    else:
        raise ValueError(kind)


def stop_soon(after_s: float, for_s: float) -> None:
    """A process outside stops this one, and lets it go on later."""
    me = os.getpid()
    words = f"sleep {after_s:.3f}; kill -STOP {me}; sleep {for_s:.3f}; kill -CONT {me}"
    # It belongs to nobody: this process may end before it.
    subprocess.Popen(["sh", "-c", f"({words}) >/dev/null 2>&1 &"]).wait()


def in_a_child(action: Callable[[], object]) -> None:
    """Forks; the child has to come to its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks of processes with threads
        child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:  # noqa: BLE001  (a child never returns into the script)
            os._exit(1)
        os._exit(0)
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            if status != 0:
                raise AssertionError(f"a forked child ended with status {status}")
            return
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError(f"a forked child did not end within {PATIENCE_S} s")
