"""Simulated step times beside those that were measured on the emulated cluster."""

import json
from typing import Any

import pytest

from scripts.benchmarks import predicted

# The farthest off of all cells that the emulated cluster could keep up with was 3.2 %.
TOLERANCE = 0.04


def cells() -> list[dict[str, Any]]:
    report = predicted.FOLDER / "cluster.json"
    return list(json.loads(report.read_text(encoding="utf-8"))["cells"])


def only(found: list[dict[str, Any]], *arms: str) -> list[dict[str, Any]]:
    """The same cells with some arms."""
    return [{**c, "arms": {arm: c["arms"][arm] for arm in ("alone", *arms)}} for c in found]


@pytest.mark.parametrize("arm", ["stock", "bucket"])
def test_what_is_left_to_horovod_takes_what_was_measured(arm: str) -> None:
    found = only(cells(), arm)
    pairs = [of_cell[arm] for of_cell in predicted.compare(found)]
    counting = [pair for pair in pairs if pair.counts]
    assert len(counting) >= 25
    for pair in counting:
        assert pair.predicted_ms == pytest.approx(pair.measured_ms, rel=TOLERANCE), pair


def test_pieces_by_priority_take_about_what_was_measured() -> None:
    found = only([c for c in cells() if c["hosts"] == 2], "priority")
    for of_cell in predicted.compare(found):
        pair = of_cell["priority"]
        assert pair.predicted_ms == pytest.approx(pair.measured_ms, rel=0.05), pair


def test_links_are_fitted_to_what_was_measured() -> None:
    found = cells()
    for hosts in (2, 4):
        cost = predicted.link_of(found, hosts).cost
        for cell in (c for c in found if c["hosts"] == hosts):
            time_ms = cost.time_us(cell["gradient_bytes"]) / 1e3
            assert time_ms == pytest.approx(cell["communication_ms"], rel=0.03)
    one = predicted.link_of(found[:1], found[0]["hosts"]).cost
    expected_ms = found[0]["communication_ms"]
    assert one.time_us(found[0]["gradient_bytes"]) / 1e3 == pytest.approx(expected_ms)


def test_what_the_jobs_measured_of_the_link_counts_more() -> None:
    def measured(alpha_us: float) -> dict[str, Any]:
        cost = {"alpha_us": alpha_us, "beta_us_per_byte": 0.02, "cycle_us": 10 * alpha_us}
        return {"cost": cost, "gather_cost": cost}

    found = [{**c, "hosts": 2} for c in cells()[:3]]
    for cell, alpha_us in zip(found, (300.0, 100.0, 200.0), strict=True):
        cell["link"] = measured(alpha_us)
    link = predicted.link_of(found, 2)
    assert (link.cost.alpha_us, link.cost.cycle_us) == (200.0, 2000.0)
    assert link.gather_cost == link.cost
    assert link.scatter_cost is None


def test_what_formats_cost_is_not_guessed() -> None:
    cell = cells()[0]
    link = predicted.link_of([cell], cell["hosts"])
    assert predicted.predicted_ms("sync", cell, link) is not None
    assert predicted.predicted_ms("equal", cell, link) is None
    assert predicted.predicted_ms("fewest", cell, link) is None


def test_a_model_is_profiled_as_it_computes() -> None:
    cell = next(c for c in cells() if c["profile"] == "gpt2")
    parameters, profile = predicted.profile_of(cell, predicted.link_of([cell], cell["hosts"]))
    assert sum(one.bytes for one in parameters) == cell["gradient_bytes"]
    assert profile.compute_us == pytest.approx(cell["compute_ms"] * 1e3)
    assert parameters[profile.ready_order[-1]].name.startswith("embedding")
    assert max(profile.ready_us) == pytest.approx(profile.backward_us)


def test_arms_that_are_not_simulated_are_left_out() -> None:
    found = only(cells()[:1], "ddp", "stock")
    assert [list(of_cell) for of_cell in predicted.compare(found)] == [["stock"]]


def test_the_report_counts_and_marks(tmp_path: Any) -> None:
    slow, good = (only(cells()[:1], "stock")[0] for _ in range(2))
    slow["arms"]["alone"] = {"step_ms": {"median": 1.5 * slow["compute_ms"]}}
    (tmp_path / "x.json").write_text(json.dumps({"cells": [slow, good]}), encoding="utf-8")
    assert predicted.main(["x", "--folder", str(tmp_path)]) == 0
    text = (tmp_path / "x-predicted.md").read_text(encoding="utf-8")
    assert "| stock Horovod | 1 of 1 |" in text
    assert text.count("%) \\* |") == 1
    with pytest.raises(SystemExit):
        predicted.main(["none", "--folder", str(tmp_path)])
