import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from deft_horovod.picture.scaling import draw
from deft_horovod.simulate.outlook import Outlook


def outlooks(links, counts, policies=("stock", "deft", "new one")):
    return [
        Outlook(
            policy=policy,
            ranks=ranks,
            link=link,
            compute_us=100.0,
            step_us=110.0 + ranks + number,
            floor_us=100.0 if policy == "deft" else 105.0,
            stock_us=110.0 + ranks,
        )
        for link in links
        for ranks in counts
        for number, policy in enumerate(policies)
    ]


@pytest.mark.parametrize(
    ("links", "counts", "titles"),
    [
        (["measured"], [4], ["link: measured"]),
        (["measured"], [4, 16], ["link: measured"]),
        (["1gbit", "10gbit"], [4], ["4 ranks"]),
        (
            ["1gbit", "10gbit"],
            [4, 16, 64],
            ["link: 1gbit", "link: 10gbit", "4 ranks", "16 ranks", "64 ranks"],
        ),
    ],
)
def test_there_is_a_panel_for_each_link_and_each_number_of_ranks(links, counts, titles):
    figure = draw(outlooks(links, counts))
    assert [axes.get_title(loc="left") for axes in figure.axes] == titles


def test_lines_are_the_efficiencies():
    found = outlooks(["1gbit", "10gbit"], [64, 4])
    figure = draw(found)
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert set(lines) == {"stock", "deft", "new one", "synchronous floor", "latest floor"}
    assert list(lines["stock"].get_xdata()) == [4, 64]
    assert list(lines["stock"].get_ydata()) == [100 / 114, 100 / 174]
    assert list(lines["latest floor"].get_ydata()) == [1.0, 1.0]
    assert list(lines["synchronous floor"].get_ydata()) == [100 / 105] * 2
    rates = figure.axes[2].get_lines()[0].get_xdata()
    assert list(rates) == [1.0, 10.0]


def test_texts_do_not_overlap():
    figure = draw(outlooks(["1gbit", "10gbit"], [4, 16, 64]))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [axes.get_tightbbox(canvas.get_renderer()) for axes in figure.axes]
    boxes.append(figure.legends[0].get_window_extent(canvas.get_renderer()))
    for number, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[number + 1 :])
