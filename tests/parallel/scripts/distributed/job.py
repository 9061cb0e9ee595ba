"""A rank program of cases in a job of torch.distributed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

from tests.parallel.scripts.reporting import cases_in, chosen, run_cases


def run_in_job(namespace: Mapping[str, Any]) -> None:
    """The cases of a program; the ranks have met before the first one, and part after the last."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    run_cases(chosen(cases_in(namespace)))
    dist.destroy_process_group()
