"""Rank programs of tests/parallel on a GPU, which all ranks share; or, for a dry run, on the host.

A job is one test here, not one for each of its cases: where there is no device it is skipped once.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence

import pytest

from tests.parallel.cases import case_names, run_program

LIMIT_S = 300


def rank_device() -> str:
    """What the ranks train on: DEFT_TEST_DEVICE, a GPU by default. Skips where it cannot be."""
    device = os.environ.get("DEFT_TEST_DEVICE") or "cuda"
    if importlib.util.find_spec("horovod") is None:
        pytest.skip("Horovod is not installed: scripts/setup.sh")
    if importlib.util.find_spec("deft_horovod._C") is None:
        pytest.skip("deft_horovod._C is not built: scripts/setup.sh")
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no CUDA device: scripts/gpu_check.sh runs this where there is one")
    return device


def sums_by_nccl() -> bool:
    """Whether Horovod adds up what is on a GPU with NCCL."""
    import horovod.torch as stock

    return bool(stock.nccl_built())


def program_test(
    program: str, nps: Sequence[int] = (2,), cases: Sequence[str] = ()
) -> Callable[..., None]:
    """The test that all cases of a program, or those named, go well on every rank."""
    names = list(cases) or case_names(program)

    @pytest.mark.timeout(LIMIT_S + 20)
    @pytest.mark.parametrize("np", nps)
    def test_cases(np: int) -> None:
        env = {"DEFT_TEST_DEVICE": rank_device()}
        job = run_program(program, np, timeout_s=LIMIT_S, options={"cases": names}, env=env)
        failures = []
        for name in names:
            try:
                job.values(name)
            except AssertionError as failure:
                failures.append(str(failure))
        count = f"{len(failures)} of {len(names)} cases failed on {np} ranks"
        assert not failures, f"{count}:\n" + "\n".join(failures[:3])

    return test_cases
