"""Runs are kept, and the page comes from what is kept."""

import pytest

from scripts.studies.formats import run as program
from scripts.studies.formats.study import rate_runs
from scripts.studies.formats.training import Run
from scripts.studies.pool import write


@pytest.fixture
def quick(monkeypatch):
    """Training that takes no time, in this process."""
    trained = []

    def finish(runs, folder, processes):
        assert processes == 1
        folder.mkdir(parents=True, exist_ok=True)
        for run in runs:
            path = program.path_of(run, folder)
            if not path.exists():
                trained.append(run)
                noise = 0.001 * (run.seed % 5) * (run.format != "f32")
                write(path, [1.0 + run.lr + noise] * 20)

    monkeypatch.setattr(program, "finish", finish)
    return trained


def test_stages_follow_each_other_and_finished_runs_are_not_trained_again(quick, tmp_path):
    folders = ["--folder", str(tmp_path / "runs"), "--report", str(tmp_path), "--processes", "1"]
    for stage in ("rates", "pilot", "study"):
        assert program.main([stage, *folders]) == 0
    count = len(quick)
    assert count > len(rate_runs())
    assert "## int8" in (tmp_path / "results.md").read_text()
    assert program.main(["study", *folders]) == 0
    assert len(quick) == count
    # On another machine the data beside the page are enough.
    elsewhere = ["--folder", str(tmp_path / "other"), *folders[2:]]
    assert program.main(["study", "--restore", *elsewhere]) == 0
    assert len(quick) == count


def test_the_larger_study_has_no_pilot_and_files_of_its_own(quick, tmp_path):
    arguments = ["--study", "larger", "--folder", str(tmp_path / "runs"), "--processes", "1"]
    for stage in ("rates", "study"):
        assert program.main([stage, *arguments, "--report", str(tmp_path)]) == 0
    assert quick
    assert "protocol-larger" in (tmp_path / "larger.md").read_text()
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [
        "larger-rates.json",
        "larger-study.json",
    ]


def test_losses_come_back_as_they_were_kept(tmp_path):
    losses = {Run("text", "sgd", 0.1, 1): [1.25, float("inf")], Run("text", "sgd", 0.1, 2): []}
    program.keep(losses, tmp_path / "some.json")
    assert program.kept(tmp_path / "some.json") == losses
    assert program.kept(tmp_path / "none.json") == {}


def test_real_runs_are_trained_in_processes_and_said(monkeypatch, tmp_path, capsys):
    run = Run("text", "sgd", 0.1, 1, "int8", 2)
    monkeypatch.setattr(program, "train", _none)
    program.finish([run], tmp_path, 1)
    assert "[1/1, 0 min left] text, sgd, 0.1, int8, seed 1: 1.0000" in capsys.readouterr().out
    assert program.finished([run], tmp_path) == {run: [1.0] * 20}


def _none(run):
    del run
    return [1.0] * 20
