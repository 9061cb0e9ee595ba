"""A rank of a job with a fatal fault: trains until it ends, by the fault or by what follows."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch
from disturb import stop_soon
from draw import Event
from draw_fatal import Fatal, draw_fatal
from ours import Ours, layers_of

import deft_horovod.torch as hvd
from tests.parallel.scripts.patience import wait_patiently
from tests.parallel.scripts.reporting import options

_RAISED = {
    "exception in forward": "raise in forward",
    "exception in backward": "raise in backward",
    "exception in a hook": "raise in a hook",
}


def note_time(what: str = "fault") -> None:
    """When the fault happened, or its error, for the test."""
    path = Path(os.environ["PARALLEL_RESULTS"]) / what
    temporary = path.with_name(f"{what}.{os.getpid()}.tmp")
    temporary.write_text(repr(time.time()))
    temporary.replace(path)


def _die(*_: Any) -> None:
    note_time()
    os.kill(os.getpid(), signal.SIGKILL)


def _interrupt() -> None:
    note_time()
    os.kill(os.getpid(), signal.SIGINT)


def strike(fatal: Fatal, ours: Ours) -> tuple[Event, ...]:
    """The fault, or what makes it happen in the step that begins."""
    kind, middle = fatal.kind, layers_of(ours.players[0].model)
    layer = middle[len(middle) // 2]
    if kind == "killed":
        threading.Timer(fatal.delay_s, _die).start()
    elif kind == "killed in forward":
        layer.register_forward_pre_hook(_die)
    elif kind == "killed in backward":
        next(layer.parameters(recurse=False)).register_post_accumulate_grad_hook(_die)
    elif kind in ("stopped too long", "never begins"):
        note_time()
        stop_soon(0.0 if kind == "never begins" else fatal.delay_s, 2.5 * options()["deadline_s"])
        time.sleep(0.2 if kind == "never begins" else 0.0)
    elif kind == "interrupted":
        threading.Timer(fatal.delay_s, _interrupt).start()
    elif kind == "exit in the middle":
        note_time()
        sys.exit(3)
    elif kind == "ended early":
        note_time()
        sys.exit(0)
    elif kind in _RAISED:
        note_time()
        return (Event(fatal.step, _RAISED[kind], fatal.rank),)
    return ()


def main() -> None:
    hvd.init()
    torch.set_num_threads(1)
    wait_patiently()
    try:
        train(draw_fatal(options()["seed"]))
    except BaseException:
        # The way out may take longer: Horovod's shutdown waits for what Gloo is doing.
        note_time(f"error.{hvd.rank()}")
        raise


def train(fatal: Fatal) -> None:
    """Until the end, or the fault."""
    ours = Ours(fatal.script)
    for step in range(fatal.script.steps):
        if step == fatal.step:
            note_time(f"ready.{hvd.rank()}")
        struck = step == fatal.step and hvd.rank() == fatal.rank
        events = strike(fatal, ours) if struck else ()
        if not all(ours.step(step, events, {})):
            raise RuntimeError("the planned fault of this script")
        ours.follow()
    ours.flush()


if __name__ == "__main__":
    main()
