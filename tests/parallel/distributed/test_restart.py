"""torchrun starts a job again after a rank has died; it goes on from its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.parallel.launch import run_ranks

pytestmark = pytest.mark.timeout(150)
FIRST_AFTER_DEATH = 6  # the last checkpoint before step 8


def trained(folder: Path, policy: str, *, dies: bool) -> list[Any]:
    folder.mkdir()
    options = {"folder": str(folder), "policy": policy, "dies": dies}
    job = run_ranks(
        "distributed/restarted.py",
        2,
        env={"TEST_LAUNCHER": "torchrun"},
        launcher=("--max-restarts", "1", "--monitor-interval", "0.5"),
        options=options,
    )
    return job.require_success().results


@pytest.mark.parametrize("policy", ["bucket", "auto"])
def test_it_ends_as_if_nothing_had_happened(policy: str, tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", policy, dies=False)
    again = trained(tmp_path / "again", policy, dies=True)
    assert [(one["attempt"], one["first"]) for one in whole] == [(0, 0)] * 2
    assert [(one["attempt"], one["first"]) for one in again] == [(1, FIRST_AFTER_DEATH)] * 2
    assert len({one["bits"] for one in (*whole, *again)}) == 1
