"""Seeds of the campaign: trainings with faults and odd habits that have to come out right.

A seed that fails says how to repeat it alone. `scripts/faults/campaign.py` runs many more.
"""

from __future__ import annotations

import functools

import pytest

from tests.faults.jobs import Outcome, run_seeds
from tests.faults.scripts.draw import CHANGES, FAULTS, READS, draw

LIMIT_S = 170
# Those that have found faults, and a run of others in which there is every kind.
FOUND = (13, 15, 221, 245, 1401)
SEEDS = (*FOUND, *range(81, 105))

pytestmark = pytest.mark.timeout(LIMIT_S + 30)


@functools.cache
def outcomes() -> dict[int, Outcome]:
    """Those that ran. One whose job ended there has no outcomes after it."""
    return {outcome.seed: outcome for outcome in run_seeds(SEEDS, LIMIT_S)}


@pytest.mark.parametrize("seed", SEEDS)
def test_seed(seed: int) -> None:
    outcome = outcomes().get(seed)
    assert outcome is not None, "the job ended before this seed; look at the last one that it ran"
    assert not outcome.troubles, outcome.text()
    for found in outcome.by_rank:
        assert found["checks"]["replicas"] > 0
        assert found["checks"]["reference"] > 0 or not found["exact"]


def test_every_kind_is_in_them() -> None:
    drawn = {kind for seed in SEEDS[len(FOUND) :] for kind in draw(seed).kinds()}
    missing = {*READS, *CHANGES, *FAULTS, "uneven data"} - drawn
    assert not missing, "draw other SEEDS"
