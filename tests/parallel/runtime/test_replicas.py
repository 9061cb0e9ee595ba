"""After every step all ranks hold the same parameters: SHA-256 over all of them."""

from __future__ import annotations

import pytest

from tests.parallel.parity_jobs import LIMIT_S, RANKS, values
from tests.parallel.scripts.parity_cases import POLICIES, RIVALS, Case, cases_at

pytestmark = pytest.mark.timeout(LIMIT_S)

_CASES = [
    pytest.param(np, case, id=f"{np}-{case.name}")
    for np in RANKS
    for case in cases_at(np)
    if case.ranks == "all"
]


@pytest.mark.parametrize(("np", "case"), _CASES)
def test_replicas_stay_equal(np: int, case: Case) -> None:
    for rank, seen in enumerate(values(np, case.name)):
        assert seen["replicas_equal"], f"rank {rank} saw different parameters on another rank"


@pytest.mark.parametrize("np", RANKS)
def test_every_policy_is_watched_at_every_step(np: int) -> None:
    watched = {c.policy for c in cases_at(np) if c.ranks == "all" and c.sync_every == 1}
    assert watched == {*POLICIES, *RIVALS}
