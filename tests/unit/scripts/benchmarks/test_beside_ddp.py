"""scripts/benchmarks/beside_ddp: ratios are taken round by round."""

from __future__ import annotations

from scripts.benchmarks.beside_ddp import ranks, run


def test_a_row_has_the_median_of_ratios_between_their_ends() -> None:
    times = {name: [100.0, 200.0, 100.0] for name in ranks.NAMES}
    times["ddp"] = [150.0, 320.0, 180.0]
    cells = [cell.strip() for cell in run.row("vgg19, 1", times).strip("|").split("|")]
    assert cells[0] == "vgg19, 1"
    assert cells[1] == "1.60 (1.50 .. 1.80)"
    assert cells[2] == "1.00 (1.00 .. 1.00)"
    assert cells[-2:] == [cells[1]] * 2


def test_every_arm_but_that_without_communication_has_a_column() -> None:
    assert [*run._TITLES] == [name for name in ranks.NAMES if name != "alone"]
