import sys
from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from deft_horovod.errors import NotSupportedError
from deft_horovod.picture import timeline as plan_picture
from deft_horovod.picture.bars import plan_bars
from deft_horovod.picture.timeline import draw, main
from deft_horovod.plan import Arena, Bucket, Generation, Link, Plan, Slot, Task
from deft_horovod.profile import LinkCost, LinkProfile, Profile
from deft_horovod.solver.predict.timeline import simulate

KINDS = [
    ("synchronous", {}),
    ("gated", {"gated": True}),
    ("delayed", {"apply_step": 1}),
    ("merged", {"first_step": -1, "last_step": 0, "apply_step": 1}),
]


def example(count=20):
    """All ways of being late, on two links; messages of very different lengths."""
    generations, tasks, sizes = [], [], []
    for bucket in range(count):
        _, how = KINDS[bucket % 4]
        spans = [how] if how.get("last_step") == 0 else [how, shifted(how)]
        sizes.append(4 * (1 + bucket**3))
        for spec in spans:
            generations.append(Generation(bucket=bucket, **spec))
            step = spec.get("last_step", 0)
            tasks.append(Task(generation=len(generations) - 1, link=bucket % 2, step=step))
    edges = [sum(sizes[:i]) for i in range(count + 1)]
    plan = Plan(
        policy="hand-made",
        period=2,
        buffers=3,
        links=tuple(Link(name=name, plan_order=False) for name in ("wire", "other", "unused")),
        arenas=(Arena(dtype="float32", wire="float32", device="cpu", elements=edges[-1]),),
        slots=tuple(
            Slot(name=f"layer{i}.weight", arena=0, begin=a, end=b)
            for i, (a, b) in enumerate(pairwise(edges))
        ),
        buckets=tuple(Bucket(arena=0, begin=a, end=b) for a, b in pairwise(edges)),
        generations=tuple(generations),
        tasks=tuple(tasks),
    )
    profile = Profile.assumed(count)
    cost = LinkCost(alpha_us=0.1, beta_us_per_byte=2e-4)
    links = tuple(LinkProfile(name=name, cost=cost) for name in ("wire", "other"))
    return plan, profile.model_copy(update={"links": links, "optimizer_us": 3.0})


def shifted(how):
    return {
        "first_step": 1,
        "last_step": 1,
        "apply_step": how.get("apply_step", 0) + 1,
        "gated": how.get("gated", False),
    }


def test_every_way_of_being_late_has_its_colour():
    plan, profile = example()
    shown = plan_bars(plan, simulate(plan, profile))
    kinds = {bar.label: bar.kind for bar in shown if bar.row}
    assert kinds == {str(bucket): KINDS[bucket % 4][0] for bucket in range(20)}
    legend = [text.get_text() for text in draw(plan, profile).legends[0].get_texts()]
    assert {"forward", "backward", "update", "waiting", *dict(KINDS)} == set(legend)


def test_no_label_leaves_its_bar_or_meets_another_one():
    figure = draw(*example())
    axes = figure.axes[0]
    renderer = FigureCanvasAgg(figure).get_renderer()
    labels = axes.texts
    assert len(labels) > 10
    boxes = [label.get_window_extent(renderer) for label in labels]
    inside = axes.get_window_extent(renderer)
    for number, box in enumerate(boxes):
        assert inside.x0 <= box.x0 <= box.x1 <= inside.x1
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])


def test_nothing_of_the_frame_overlaps():
    figure = draw(*example())
    axes = figure.axes[0]
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = [
        axes.xaxis.label.get_window_extent(renderer),
        axes._left_title.get_window_extent(renderer),
        figure.legends[0].get_window_extent(renderer),
        axes.get_window_extent(renderer),
        *(label.get_window_extent(renderer) for label in axes.get_yticklabels()),
    ]
    width, height = figure.canvas.get_width_height()
    for number, box in enumerate(boxes):
        assert box.x0 >= 0 <= box.y0
        assert box.x1 <= width
        assert box.y1 <= height
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])


def test_links_that_carry_nothing_have_no_row():
    rows = [label.get_text() for label in draw(*example()).axes[0].get_yticklabels()]
    assert [row.split("\n")[0] for row in rows] == ["compute", "wire", "other"]


def test_a_plan_of_stock_says_whose_the_communication_is():
    title = draw(Plan(policy="stock"), Profile.assumed(2)).axes[0].get_title(loc="left")
    assert title.endswith("Horovod's own and not in this picture")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NotSupportedError, match=r"pip install 'deft_horovod\[plot\]'"):
        draw(*example())


def saved(folder):
    plan, profile = example()
    plan.save(folder / "plan.json")
    profile.save(folder / "profile.json")
    return str(folder / "plan.json"), str(folder / "profile.json")


def test_from_the_shell_it_prints_and_draws(tmp_path, capsys):
    files = saved(tmp_path)
    assert main([*files, str(tmp_path / "out.png")]) == 0
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert "predicted: compute" in capsys.readouterr().out
    assert main(files) == 0
    assert main([*files, str(tmp_path / "out.svg")]) == 0


def test_a_prediction_that_is_there_is_kept(tmp_path, capsys):
    files = saved(tmp_path)
    plan, profile = example()
    predicted = plan_picture.predict(plan, profile, bound_us=1.0, status="optimal")
    predicted.save(files[0])
    assert main(files) == 0
    assert capsys.readouterr().out == predicted.describe() + "\n"


@pytest.mark.parametrize("name", ["missing.json", "profile.json"])
def test_what_is_wrong_with_a_file_is_a_message(name, tmp_path, capsys):
    files = saved(tmp_path)
    assert main([str(tmp_path / name), files[1]]) == 1
    assert capsys.readouterr().err.startswith("deft_horovod: ")


def test_an_unknown_kind_of_picture_is_a_message(tmp_path, capsys):
    assert main([*saved(tmp_path), str(tmp_path / "out.xyz")]) == 1
    assert "xyz" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["plan.json"], ["a", "b", "c", "d"]])
def test_the_wrong_number_of_names_shows_the_usage(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("usage:")
