"""How the benchmark turns process runs into tables."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.benchmarks import report

OPTIONS = {
    "hosts": 2,
    "profile": "vgg19",
    "ccr": 1.0,
    "rate_mbit": 500,
    "second_rate_mbit": None,
    "compute_ms": 200.0,
}
PREDICTION = {
    "compute_us": 200e3,
    "step_us": 201e3,
    "bound_us": 200e3,
    "staleness": [
        {"delay": 1, "merged": 1, "gated": False, "bytes": 600},
        {"delay": 0, "merged": 1, "gated": True, "bytes": 300},
        {"delay": 1, "merged": 2, "gated": False, "bytes": 100},
    ],
    "updates_per_step": 0.95,
}


def seen(steps_ms: list[float], rank: int) -> dict[str, Any]:
    return {"steps_ms": steps_ms, "cores": 0.25, "waited_ms": 3.0 + rank, "late_ms": 0.5}


def result(steps_ms: dict[str, list[list[float]]], **options: Any) -> dict[str, Any]:
    """`steps_ms`: for each arm the steps of each rank, one round."""
    stats = {"deft": {"exposed_us": 1500.0, "plans": 2, "policy": "deft", "prediction": PREDICTION}}
    return {
        "options": {**OPTIONS, **options},
        "versions": {"torch": "2", "kernel": "6"},
        "gradient_bytes": 11_850_000,
        "tensors": 38,
        "communication_ms": 204.0,
        "missing": {"sync": "there is no policy least_stale"},
        "warm_up_s": 5.0,
        "seconds": 20.0,
        "arms": {
            arm: {
                "rounds": [[seen(steps, rank)] for rank, steps in enumerate(ranks)],
                "warm_up_ms": [200.0, 900.0],
                "stats": stats.get(arm, {}),
            }
            for arm, ranks in steps_ms.items()
        },
    }


def one_run(deft_ms: float = 202.0) -> dict[str, Any]:
    return result(
        {
            "alone": [[200.0, 200.0], [200.0, 200.0]],
            "stock": [[270.0, 280.0], [279.0, 281.0]],
            "deft": [[deft_ms - 2, deft_ms], [deft_ms, deft_ms]],
        }
    )


def test_a_round_is_the_mean_of_its_steps_on_the_slowest_rank() -> None:
    assert report.rounds_ms(one_run(), "stock") == [280.0]


def test_ratios_and_spread_over_process_runs() -> None:
    (cell,) = report.summarise([one_run(202.0), one_run(206.0), one_run(204.0)])
    deft = cell["arms"]["deft"]
    assert deft["step_ms"] == {"median": 204.0, "min": 202.0, "max": 206.0}
    assert deft["of_compute"]["median"] == pytest.approx(1.02)
    assert deft["of_stock"]["median"] == pytest.approx(204 / 280)
    assert deft["exposed_ms"] == pytest.approx(4.0)
    assert deft["stats_exposed_ms"] == pytest.approx(1.5)
    assert (deft["waited_ms"], deft["late_ms"]) == (4.0, 0.5)
    assert deft["longest_warm_up_step_ms"] == [900.0] * 3
    assert deft["cores"] == pytest.approx(0.5)
    assert deft["bound_ms"] == pytest.approx(200.0)
    assert deft["staleness"] == ["delay 1 60 %, gated 30 %, delay 1 x2 10 %"]


def test_a_run_without_prediction_is_tolerated() -> None:
    run = one_run()
    run["arms"]["deft"]["stats"]["prediction"] = None
    (cell,) = report.summarise([run])
    assert "staleness" not in cell["arms"]["deft"]
    assert "| deft | 202.0 |" in report.details(cell)


def test_the_best_setting_may_be_the_default() -> None:
    for stock_ms, best in (
        (275.0, "fusion: 0.125 of the model, cycle: 1 ms"),
        (290.0, "as it comes"),
    ):
        steps = {"stock": [[stock_ms], [stock_ms]]}
        tuned = result(steps, fusion_share=0.125, cycle_ms=1.0)
        (cell,) = report.summarise([one_run(), tuned])
        assert cell["tuned"]["best"] == best
        assert cell["tuned"]["step_ms"] == min(stock_ms, 280.0)


def test_targets_met_and_missed() -> None:
    (cell,) = report.summarise([one_run(202.0)])
    assert report.targets([cell]) == "1 of 1 targets are met."
    (cell,) = report.summarise([one_run(210.0)])
    text = report.targets([cell])
    assert text.startswith("0 of 1 targets are met.")
    assert "| 2 | vgg19 | 1 | deft | step / compute <= 1.02 | 1.050 |" in text


def test_two_links_have_to_do_without_merging() -> None:
    run = one_run()
    run["arms"]["deft_two"] = run["arms"].pop("deft")
    (cell,) = report.summarise([run])
    assert "deft, two links | no merging | 1.053 |" in report.targets([cell])
    run["options"]["ccr"] = 2.0
    (cell,) = report.summarise([run])
    assert report.targets([cell]) == "0 of 0 targets are met."


def test_slow_networks_have_a_target_of_their_own() -> None:
    run = one_run(208.0)
    run["options"]["ccr"] = 4.0
    (cell,) = report.summarise([run])
    assert report.targets([cell]) == "1 of 1 targets are met."


def test_both_files_hold_the_numbers(tmp_path: Path) -> None:
    runs = [one_run(), result({"alone": [[200.0]], "stock": [[210.0]]}, ccr=0.25)]
    path = report.write(runs, "name", "the command", tmp_path)
    text = path.read_text()
    assert text.index("| 2 | vgg19 | 0.25 | 1.05 |  |") < text.index(
        "| 2 | vgg19 | 1 | 1.40 | 1.01 |"
    )
    assert "```bash\nthe command\n```" in text
    assert "Not measured: least_stale, no delay (there is no policy least_stale)." in text
    cells = json.loads((tmp_path / "name.json").read_text())["cells"]
    assert [cell["ccr"] for cell in cells] == [0.25, 1.0]
