"""A rank of the campaign: runs the scripts of many seeds one after the other and reports each."""

from __future__ import annotations

import os
import time
import traceback
from typing import Any

import horovod.torch as stock
import torch
from draw import draw
from run_script import Run

import deft_horovod.torch as hvd
from tests.parallel.scripts.patience import wait_patiently
from tests.parallel.scripts.reporting import options, report


def outcome_of(seed: int) -> dict[str, Any]:
    """What became of one seed on this rank."""
    began_s = time.perf_counter()
    script = draw(seed)
    default = torch.get_default_dtype()
    if script.dtype == "bfloat16" and seed % 2:
        torch.set_default_dtype(torch.bfloat16)  # as scripts of such models do
    try:
        outcome = Run(script).all()
    except Exception:  # noqa: BLE001  (whatever it is, the report shows it)
        outcome = {"seed": seed, "error": traceback.format_exc()}
    finally:
        torch.set_default_dtype(default)
    return {**outcome, "seconds": time.perf_counter() - began_s}


def main() -> None:
    hvd.init()
    torch.set_num_threads(1)
    wait_patiently()
    done: list[dict[str, Any]] = []
    for seed in options()["seeds"]:
        report([*done, {"seed": seed, "error": "did not end"}])
        found = outcome_of(seed)
        done.append(found)
        report(done)
        if "error" in found:
            # The other rank may be anywhere; the job begins anew with the next seed.
            os._exit(1)
        bad = stock.allgather(torch.tensor([len(found["failures"])]), name="campaign.failures")
        if bool(bad.any()) and not found["failures"]:
            found["failures"] = ["another rank has failed"]
            report(done)


if __name__ == "__main__":
    main()
