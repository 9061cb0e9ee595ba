"""How far clocks are apart."""

import random

import pytest

from deft_horovod.runtime.ranks import clock_offset as module
from deft_horovod.runtime.ranks.clock_offset import clock_offset


class Two:
    """Two ranks on two machines; this one is the second, and its clock is behind."""

    rank = 5

    def __init__(self, behind_us, jitter_us, boots=("a", "b")):
        self._behind_us, self._jitter_us, self._boots = behind_us, jitter_us, boots
        self._random = random.Random(0)
        self._now_us = 1e9

    def collect(self, _):
        return [*self._boots]

    def gather(self, numbers):
        (mine,) = numbers
        if mine == self.rank:
            return [[2.0], [5.0]]
        other_us = mine + self._behind_us + self._random.uniform(-1, 1) * self._jitter_us
        return [[other_us], [mine]]


@pytest.mark.parametrize("behind_us", [-4e6, 0.0, 2.5e5])
def test_the_difference_is_found_within_its_error(behind_us):
    offset = clock_offset(Two(behind_us, 100.0))
    assert abs(offset.us - behind_us) <= 100.0
    assert 0.0 < offset.error_us <= 100.0


def test_ranks_of_one_machine_have_one_clock(monkeypatch):
    agreement = Two(1e6, 0.0, boots=("a", "a"))
    assert clock_offset(agreement) == module.ClockOffset(0.0, 0.0)
