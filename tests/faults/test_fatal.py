"""Faults with a job of their own: as a rule all ranks end, in time, and say why."""

from __future__ import annotations

import pytest

from tests.faults.fatal import run_fatal, why_not
from tests.faults.scripts.draw_fatal import KINDS, draw_fatal

pytestmark = pytest.mark.timeout(400)

# One of each kind; the rest is the campaign's.
SEEDS = tuple(range(1, 1 + len(KINDS)))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: draw_fatal(seed).kind.replace(" ", "_"))
def test_it_comes_to_a_good_end(seed: int) -> None:
    fatal = draw_fatal(seed)
    reason = why_not(fatal)
    if reason is not None:
        pytest.skip(reason)
    ended = run_fatal(fatal)
    assert not ended.troubles, ended.text()
