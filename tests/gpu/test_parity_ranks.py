"""Delay 0 is Horovod on a GPU too: every policy beside Horovod's own optimizer."""

from __future__ import annotations

import pytest

from tests.gpu.ranks import rank_device, sums_by_nccl
from tests.parallel.parity_jobs import LIMIT_S, check_equal, parity_job
from tests.parallel.scripts.parity_cases import cases_at

pytestmark = pytest.mark.timeout(LIMIT_S)


@pytest.mark.parametrize("np", [2, 4])
def test_equals_horovod_and_replicas_stay_equal(np: int) -> None:
    device = rank_device()
    job = parity_job(np, device)
    nccl = device == "cuda" and sums_by_nccl()
    failures = []
    for case in cases_at(np):
        try:
            seen = job.values(case.name)
            check_equal(np, case, seen, nccl)
            assert case.ranks != "all" or all(s["replicas_equal"] for s in seen), "replicas differ"
        except AssertionError as failure:
            failures.append(f"{case.name}: {failure}")
    count = f"{len(failures)} of {len(cases_at(np))} cases failed on {np} ranks"
    assert not failures, f"{count}:\n" + "\n".join(failures)
