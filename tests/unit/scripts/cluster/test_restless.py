import time

import pytest

from scripts.cluster.cluster import ClusterError
from scripts.cluster.restless import restless


def test_the_rate_halves_and_comes_back_and_is_the_given_one_in_the_end():
    rates = []
    with restless(101, 0.01, rates.append):
        while len(rates) < 5:
            time.sleep(0.01)
    assert rates[:5] == [50, 101, 50, 101, 50]
    assert rates[-1] == 101


def test_a_short_use_changes_nothing():
    rates = []
    with restless(100, 60.0, rates.append):
        pass
    assert rates == [100]


def test_what_fails_beside_is_raised_at_the_end():
    def fail(_):
        raise ClusterError("there is no cluster up")

    with pytest.raises(ClusterError, match="no cluster up"), restless(100, 0.01, fail):
        time.sleep(0.1)
