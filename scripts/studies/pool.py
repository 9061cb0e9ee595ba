"""Trains the runs of a study in processes; what is finished stays on disk."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

R = TypeVar("R")


def train_all(
    missing: Mapping[R, Path],
    train: Callable[[R], Any],
    processes: int,
    said: Callable[[R, Any], str],
) -> None:
    """Writes the outcome of each run to its file as soon as it is there. `said`: of an outcome."""
    began_s = time.monotonic()
    # A fork of a process in which torch has threads may wait for them for ever.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(train, run): run for run in missing}
        for done, future in enumerate(as_completed(futures), 1):
            run, outcome = futures[future], future.result()
            write(missing[run], outcome)
            left_min = (time.monotonic() - began_s) / done * (len(missing) - done) / 60.0
            print(
                f"[{done}/{len(missing)}, {left_min:.0f} min left] {said(run, outcome)}", flush=True
            )


def write(path: Path, outcome: Any) -> None:
    """As JSON; the file is whole, or not there."""
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(outcome), encoding="utf-8")
    draft.replace(path)
