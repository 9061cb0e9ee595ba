"""What the picture of a report shows."""

import pytest

from scripts.benchmarks import picture as bench_picture
from tests.unit.scripts.benchmarks.test_rivals import FULL, cell

pytest.importorskip("matplotlib")


def lines(axes) -> dict[str, list[float]]:
    return {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}


def test_a_panel_for_each_model_and_number_of_hosts() -> None:
    cells = [
        {**cell(**FULL), "hosts": hosts, "profile": profile, "ccr": ccr}
        for hosts in (2, 4)
        for profile in ("vgg19", "gpt2")
        for ccr in (2.0, 0.5)
    ]
    axes = bench_picture.draw(cells).axes
    assert len(axes) == 2 * 4
    assert [one.get_title() for one in axes[:4]] == [
        "vgg19, 2 hosts",
        "gpt2, 2 hosts",
        "vgg19, 4 hosts",
        "gpt2, 4 hosts",
    ]
    above, below = lines(axes[0]), lines(axes[4])
    assert above["deft"] == pytest.approx([280 / 200] * 2)
    assert above["stock Horovod"] == [1.0, 1.0]
    assert below["deft"] == pytest.approx([210 / 200] * 2)
    assert below["least_stale, no delay"] == pytest.approx([240 / 230] * 2)
    assert "usbyte" not in below


def test_cells_without_stock_horovod_are_left_out() -> None:
    rest = {name: ms for name, ms in FULL.items() if name != "stock"}
    figure = bench_picture.draw([cell(**FULL), {**cell(**rest), "hosts": 4}])
    assert len(figure.axes) == 2
