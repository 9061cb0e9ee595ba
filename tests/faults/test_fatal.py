"""A fault on one rank ends the job: all others end in time, and say why."""

from __future__ import annotations

import pytest

from tests.faults.fatal import run_fatal
from tests.faults.scripts.draw_fatal import KINDS, draw_fatal

pytestmark = pytest.mark.timeout(180)

# One after the other they take a minute and a half; the rest of each kind is the campaign's.
SEEDS = tuple(range(1, 1 + len(KINDS)))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: draw_fatal(seed).kind.replace(" ", "_"))
def test_everybody_ends(seed: int) -> None:
    ended = run_fatal(draw_fatal(seed))
    assert not ended.troubles, ended.text()
