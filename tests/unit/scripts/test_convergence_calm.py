import math

import pytest
from convergence_calm import calm_arms, calm_section
from convergence_lateness import Arm
from convergence_report import cells

from deft_horovod.runtime.rate_watch import CALM
from tests.unit.scripts.test_convergence_preserver import SYNCHRONOUS, UNCORRECTED, outcomes

LATER, OURS = calm_arms()


def section(**arms):
    of = {"synchronous": SYNCHRONOUS, "ours": OURS, "later": LATER, "start": UNCORRECTED}
    return calm_section(cells(outcomes({of[name]: losses for name, losses in arms.items()})))


def row(text):
    (line,) = [line for line in text.splitlines() if line.startswith("| mlp")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_arms_wait_for_the_rate_that_the_product_waits_for():
    assert {arm.below for arm in calm_arms()} == {CALM}
    assert all(arm.late < 0 and arm.delay == 1 for arm in calm_arms())


def test_within_is_within_the_interval_of_synchronous_training():
    synchronous = [1.0, 1.1, 0.9]
    found = section(synchronous=synchronous, ours=[1.02, 1.12, 0.92], later=[2.0] * 3)
    assert row(found)[5] == "yes"
    assert "Within in 1 of 1 settings." in found
    assert row(section(synchronous=synchronous, ours=[1.5, 1.6, 1.4]))[5] == "no"


def test_a_difference_within_the_interval_may_be_beyond_chance():
    """Runs of the same seed differ little before the rate has fallen."""
    found = row(section(synchronous=[1.0, 1.1, 0.9], ours=[1.0101, 1.1109, 0.9092]))
    assert found[4:7] == ["1.010", "yes", "**worse**"]


def test_uncorrected_training_stands_beside():
    found = row(section(synchronous=[1.0, 1.0], ours=[1.0, 1.0], later=[1.5, 1.5]))
    assert found[7:] == ["1.50", ""]
    lost = row(section(synchronous=[1.0, 1.0], ours=[1.0, 1.0], start=[math.inf, 2.0]))
    assert lost[7:] == ["", "diverged"]


@pytest.mark.parametrize("losses", [{"ours": [1.0], "synchronous": [math.inf]}, {"ours": [1.0]}])
def test_nothing_is_compared_with_nothing(losses):
    assert section(**{"synchronous": [math.inf], **losses}) == ""


def test_arms_are_told_apart_by_name():
    assert len({arm.name for arm in (*calm_arms(), Arm(-1, 1, 1, "local"), UNCORRECTED)}) == 4
