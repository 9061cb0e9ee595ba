"""Ranks that differ stop, all of them, within seconds, with the difference and both sides."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.parallel.launch import run_ranks

pytestmark = pytest.mark.timeout(180)

# case: what differs, what rank 0 has, what the last rank has, about which tensor
DIFFERENCES = {
    "shape": ("parameters.2.shape.0", "2", "3", "1.weight"),
    "name": ("parameters.2.name", "'m.1.weight'", "'m.another'", "m.1.weight"),
    "dtype": ("parameters.0.dtype", "'float32'", "'float64'", "0.weight"),
    "more": ("parameters.length", "4", "6", "2.weight"),
    "frozen": ("parameters.3.trains", "True", "False", "1.bias"),
    "policy": ("config.policy", "'priority'", "'wfbp'", None),
    "config": ("config.bucket_bytes", "4096", "2048", None),
    "compression": ("reduction.compression", "'NoneCompressor'", "'FP16Compressor'", None),
    "passes": ("backward_passes_per_step", "1", "2", None),
    "operation": ("reduction.op", None, None, None),
    "predivision": ("reduction.gradient_predivide_factor", "1.0", "2.0", None),
    "groups": ("groups.", None, None, None),
    "later bucket": ("parameters.1.trains", "True", "False", "0.bias"),
    "later priority": ("parameters.1.trains", "True", "False", "0.bias"),
}
RANKS = (2, 4)


@functools.cache
def job(np: int) -> list[dict[str, Any]]:
    return run_ranks("failures/fail_agreement.py", np, timeout_s=150).require_success().results


@pytest.mark.parametrize("case", DIFFERENCES)
@pytest.mark.parametrize("np", RANKS)
def test_every_rank_says_what_differs(np: int, case: str) -> None:
    path, first, last, tensor = DIFFERENCES[case]
    for rank, found in enumerate(job(np)):
        error = found[case]
        assert error["type"] == "AgreementError", error
        message = error["message"]
        assert f"'{path}" in message
        assert f"rank {rank}" in message
        assert f"expected: rank 0: {first or ''}" in " ".join(message.split())
        assert f"observed: rank {np - 1}: {last or ''}" in " ".join(message.split())
        assert (f"tensor '{tensor}'" in message) == (tensor is not None)
        assert "action:" in message
        assert error["seconds"] < 5.0


@pytest.mark.parametrize("policy", ["bucket", "priority", "stock"])
@pytest.mark.parametrize("np", RANKS)
def test_the_job_can_go_on_after_each(np: int, policy: str) -> None:
    for found in job(np):
        assert found[f"after all {policy}"]["type"] is None, found[f"after all {policy}"]
        assert found[f"after all {policy}"]["equal"]
