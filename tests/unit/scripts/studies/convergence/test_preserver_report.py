import re

from scripts.studies.convergence.preserver_report import preserver_report
from tests.unit.scripts.studies.convergence.test_preserver import (
    ALL,
    HALF,
    SYNCHRONOUS,
    UNCORRECTED,
    outcomes,
)


def report():
    calm = {SYNCHRONOUS: [1.0, 1.1], HALF: [1.01, 1.1], ALL: [1.02, 1.1], UNCORRECTED: [1.5, 1.7]}
    wild = {SYNCHRONOUS: [1.0, 1.1], HALF: [1.1, 1.2], ALL: [1.5, 1.6], UNCORRECTED: [9.0, 9.9]}
    return preserver_report(outcomes(calm, 0.5) + outcomes(wild, 3.0, task="cnn"))


def rows(text, begin):
    return [line for line in text.splitlines() if line.startswith(f"| {begin}")]


def test_expected_and_measured_are_correlated_in_groups():
    (line,) = rows(report(), "all | 6")
    assert float(line.split("|")[3]) > 0.8
    assert len(rows(report(), "task ")) == 2
    assert len(rows(report(), "correction ")) == 2


def test_vetoes_are_counted_by_what_came_of_the_arms():
    (losing,) = rows(report(), "those that lose | ")
    count, vetoed = (int(cell) for cell in losing.split("|")[2:4])
    assert 0 < vetoed <= count
    assert re.search(r"would veto \d+ % of the others", report())


def test_constants_are_given_without_each_task():
    assert len(rows(report(), "without ")) == 2


def test_auto_stands_beside_synchronous_training():
    (calm,) = rows(report(), "mlp, sgd")
    assert "all late 2" in calm
    (wild,) = rows(report(), "cnn, sgd")
    assert "all late" not in wild
