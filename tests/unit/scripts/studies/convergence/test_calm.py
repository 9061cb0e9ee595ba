import math

import pytest

from deft_horovod.runtime.decide.rate_watch import CALM
from scripts.studies.convergence.calm import calm_arms, calm_section
from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.training import Run
from tests.unit.scripts.studies.convergence.test_preserver import SYNCHRONOUS, UNCORRECTED, outcome

LATER, EARLIER, *OURS = calm_arms()


def section(turns=(0.1,) * 10, **arms):
    of = {"synchronous": SYNCHRONOUS, "later": LATER, "start": UNCORRECTED}
    of |= {"first": OURS[0], "second": OURS[1], "earlier": EARLIER}
    made = []
    for name, losses in arms.items():
        for seed, loss in enumerate(losses, 1):
            one = outcome(loss)
            one["statistics"]["change_square"] = [2.0 * turn for turn in turns]
            made.append((Run("mlp", "sgd", 0.1, of[name], seed), one))
    return calm_section(made)


def row(text):
    (line,) = [line for line in text.splitlines() if line.startswith("| mlp")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_arms_wait_for_the_rates_that_the_product_waits_for():
    assert tuple(arm.below for arm in OURS) == CALM
    assert LATER.below == CALM[0] < EARLIER.below
    assert all(arm.late < 0 and arm.delay == 1 for arm in calm_arms())


def test_non_inferior_is_less_than_the_margin_beyond_chance():
    synchronous = [1.0, 1.1, 0.9]
    found = section(synchronous=synchronous, first=[1.001, 1.102, 0.9], later=[2.0] * 3)
    assert row(found)[4] == "1.001"
    assert row(found)[6] == "yes"
    assert 1.001 < float(row(found)[5]) < 1.02
    assert "Non-inferior: 1 of 1 settings." in found
    wide = section(synchronous=synchronous, first=[1.05, 1.05, 0.9])
    assert row(wide)[6] == "not decided"
    assert "Non-inferior: 0 of 1 settings." in wide


def test_what_is_non_inferior_may_be_worse_beyond_chance():
    """Runs of the same seed differ little before the rate has fallen."""
    found = row(section(synchronous=[1.0, 1.1, 0.9], first=[1.0101, 1.1109, 0.9092]))
    assert [found[i] for i in (4, 6, 7, 8)] == ["1.010", "yes", "**worse**", f"from {CALM[0]:g} 3"]


@pytest.mark.parametrize(
    ("calm_from", "chosen", "loss"),
    [(3, "from 0.75 2", "2.000 ± 0.000"), (5, "from 0.5 2", "1.500 ± 0.000"), (8, "", "")],
)
def test_late_as_soon_as_it_is_affordable(calm_from, chosen, loss):
    """Rates have fallen so far in the fourth and in the sixth tenth."""
    turns = [3.0] * calm_from + [0.1] * (10 - calm_from)
    arms = {"synchronous": [1.0, 1.0], "first": [2.0, 2.0], "second": [1.5, 1.5]}
    found = row(section(turns, **arms))
    assert found[3] == (loss or found[2])
    assert found[8] == (chosen or "synchronous 2")
    assert found[7] == ("**worse**" if chosen else "equal")
    assert found[9] == "2.00", "everything late, whatever it costs"


def test_what_auto_does_not_do_stands_beside():
    both = {"synchronous": [1.0, 1.0], "first": [1.0, 1.0]}
    found = row(section(**both, later=[1.5, 1.5], earlier=[1.25, 1.25]))
    assert found[10:] == ["1.25", "1.50", ""]
    lost = row(section(**both, start=[math.inf, 2.0]))
    assert lost[10:] == ["", "", "diverged"]


@pytest.mark.parametrize("losses", [{"first": [1.0], "synchronous": [math.inf]}, {"first": [1.0]}])
def test_nothing_is_compared_with_nothing(losses):
    assert section(**{"synchronous": [math.inf], **losses}) == ""


def test_arms_are_told_apart_by_name():
    assert len({arm.name for arm in (*calm_arms(), Arm(-1, 1, 1, "local"), UNCORRECTED)}) == 6
