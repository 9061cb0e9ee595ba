import json

import pytest

from scripts.studies.convergence import run as convergence
from scripts.studies.convergence.kept import rates_of, restored, to_data
from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.study import final_runs, key
from scripts.studies.convergence.training import Run

BEST = {("mlp", "sgd"): 0.1, ("cnn", "sgd"): 0.05, ("cnn", "adamw"): 0.01}
RUNS = final_runs(BEST, [1, 2])


def outcome(run):
    return {
        "run": {},
        "loss": 0.1 * run.seed + run.lr,
        "accuracy": 0.9,
        "statistics": {
            name: [run.lr, run.seed] for name in ("own_square", "average_square", "change_square")
        },
    }


def data_of(runs):
    """As a file has it: keys are words there."""
    return json.loads(json.dumps(to_data([(run, outcome(run)) for run in runs])))


def test_every_run_comes_back():
    found = restored(RUNS, data_of(RUNS))
    assert list(found) == RUNS
    for run, kept in found.items():
        assert kept["loss"] == outcome(run)["loss"]
        assert convergence.run_of(kept) == run
        assert ("statistics" in kept) == (run.arm == Arm())


def test_what_is_not_there_does_not():
    first = [run for run in RUNS if run.seed == 1]
    assert list(restored(RUNS, data_of(first))) == first
    assert restored(RUNS, []) == {}


def test_synchronous_runs_need_what_was_seen_of_their_gradients():
    data = data_of(RUNS)
    for row in data:
        for arm in row["arms"]:
            arm.pop("statistics", None)
    assert list(restored(RUNS, data)) == [run for run in RUNS if run.arm != Arm()]


def test_rates_come_back():
    assert rates_of(data_of(RUNS)) == BEST


def test_a_study_goes_on_with_what_a_report_has(tmp_path, capsys, monkeypatch):
    runs = [
        Run("mlp", "sgd", 0.05, arm, seed, stretch=0.02)
        for arm in (Arm(), Arm(-1, 1, 1, "local", warmup=2))
        for seed in (1, 2)
    ]
    monkeypatch.setattr(convergence, "final_runs", lambda best, seeds: runs)
    missing = runs.pop(1)
    (tmp_path / "final.json").write_text(json.dumps(data_of(runs)))
    runs.append(missing)
    words = ["final", "--restore", "--report", str(tmp_path), "--processes", "1"]
    assert convergence.main([*words, "--folder", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr().out
    assert "restored 3 of 4 runs" in said
    assert "best rate of mlp with sgd: 0.05" in said
    (row,) = json.loads((tmp_path / "final.json").read_text())
    losses = {arm["late"]: arm["losses"] for arm in row["arms"]}
    assert losses[0]["1"] == losses[-1]["1"] == pytest.approx(0.15)
    assert set(losses[0]) == set(losses[-1]) == {"1", "2"}
    assert (tmp_path / "runs" / f"{key(missing)}.json").exists()
