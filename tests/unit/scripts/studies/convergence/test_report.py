import math

import pytest

from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.report import cells, draw, summary, tables, verdict
from scripts.studies.convergence.training import Run

LATE = Arm(-1, 1, 1, "none")
LOCAL = Arm(-1, 1, 1, "local")


def outcomes(losses, task="mlp", lr=0.1):
    """Of {arm: losses by seed}."""
    return [
        (Run(task, "sgd", lr, arm, seed), {"loss": loss, "accuracy": 0.9})
        for arm, of_seeds in losses.items()
        for seed, loss in enumerate(of_seeds, 1)
    ]


def cell_of(found, arm):
    (row,) = found.values()
    return next(cell for cell in row if cell.arm == arm)


def test_the_synchronous_arm_comes_first():
    found = cells(outcomes({LATE: [1.0], LOCAL: [1.0], Arm(): [1.0]}))
    (row,) = found.values()
    assert row[0].arm == Arm()


def test_the_interval_is_that_of_student():
    cell = cell_of(cells(outcomes({Arm(): [1.0, 2.0, 3.0]})), Arm())
    assert cell.mean == 2.0
    assert cell.interval == pytest.approx(4.30 / math.sqrt(3))


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([1.1, 2.2, 3.3], "**worse**"),  # by the same share for each seed
        ([0.9, 1.8, 2.7], "better"),
        ([2.0, 1.0, 3.1], "same"),
        ([1.0, 2.0, math.inf], "**diverged**"),
        ([5.0], "one seed"),
    ],
)
def test_runs_of_one_seed_are_compared(losses, said):
    found = cells(outcomes({Arm(): [1.0, 2.0, 3.0], LATE: losses}))
    assert verdict(cell_of(found, LATE), cell_of(found, Arm())) == said


def test_tables_and_summary():
    found = cells(outcomes({Arm(): [1.0, 1.0], LATE: [math.inf, 3.0], LOCAL: [1.0, 1.1]}))
    text = tables(found)
    assert "### mlp, sgd, lr 0.1" in text
    assert "| synchronous | 2 | 1.000 ± 0.000 | 1.00 | 90.0 % |  |" in text
    assert "| all late by 1, none | 2 | diverged |" in text
    assert "| uncorrected | 1 | 0 |  | 1 |" in summary(found)
    assert "| local (ours) | 1 | 1 | 0 | 0 | 1.05 | 1.05 |" in summary(found)


def test_where_synchronous_training_diverges_nothing_is_counted():
    found = cells(outcomes({Arm(): [math.inf], LATE: [math.inf]}))
    assert summary(found).count("\n") == 1  # the head alone


def test_a_picture_for_each_task(tmp_path):
    losses = {Arm(): [1.0, 1.1], LATE: [9.0, 8.0], LOCAL: [1.0, 1.2]}
    found = cells([*outcomes(losses), *outcomes(losses, "cnn"), *outcomes(losses, "cnn", 0.2)])
    paths = draw(found, tmp_path)
    assert [path.name for path in paths] == ["mlp.png", "cnn.png"]
    assert all(path.stat().st_size > 10_000 for path in paths)
