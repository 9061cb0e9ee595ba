"""Ctrl-C gets through while a rank waits."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.parallel.launch import run_ranks

pytestmark = [pytest.mark.alone, pytest.mark.timeout(100)]

POLICIES = ("bucket", "priority", "stock")


@functools.cache
def results() -> list[dict[str, Any]]:
    job = run_ranks("failures/fail_interrupt.py", 2, timeout_s=80, options={"policies": POLICIES})
    return job.require_success().results


@pytest.mark.parametrize("where", [*POLICIES, "agreement"])
def test_it_ends_the_wait_before_the_other_rank_comes(where: str) -> None:
    interrupted = results()[0][where]
    assert interrupted["type"] == "KeyboardInterrupt", interrupted
    # The interrupt comes 1 s after its timer, which starts first; the other rank comes after 3 s.
    assert 0.5 < interrupted["seconds"] < 2.8


@pytest.mark.parametrize("policy", POLICIES)
def test_the_other_rank_and_later_optimizers_are_not_harmed(policy: str) -> None:
    assert results()[1][policy]["type"] is None, results()[1][policy]
    for found in results():
        assert found[f"after {policy}"]["type"] is None, found[f"after {policy}"]
        assert found[f"after {policy}"]["equal"]
