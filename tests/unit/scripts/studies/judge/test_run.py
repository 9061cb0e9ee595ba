"""The command."""

import json
from dataclasses import asdict

from scripts.studies.judge import run as judge_run
from scripts.studies.judge.run import PAGE, REPORT, keep, kept, main, path_of
from scripts.studies.judge.study import settings_of, study_runs
from scripts.studies.judge.training import Run, Training

RUN = Run("text", "sgd", 0.5, "int8", 1)
OUTCOME = {"losses": [2.0] * 20, "errors": [], "statistics": {}, "late_share": 0.0}


def test_what_was_kept_stays_and_is_read_again(tmp_path):
    path = tmp_path / "study.json"
    assert kept(path) == {}
    keep({RUN: OUTCOME}, path)
    other = Run("text", "sgd", 0.5, "exact", 1)
    keep({other: {**OUTCOME, "late_share": 0.5}}, path)
    assert kept(path) == {RUN: OUTCOME, other: {**OUTCOME, "late_share": 0.5}}


def test_a_run_is_named_by_all_that_it_is():
    runs = study_runs(settings_of({}))
    assert len({path_of(run, REPORT) for run in runs}) == len(runs)


def test_a_command_trains_what_is_missing_and_reports_it(short, tmp_path, monkeypatch):
    del short
    monkeypatch.setattr(judge_run, "rate_runs", list)
    monkeypatch.setattr(
        judge_run, "study_runs", lambda settings: [RUN, Run("text", "sgd", 0.5, "exact", 1)]
    )
    trained = []

    def train_all(missing, train, processes, said):
        assert processes == 1
        for run, path in missing.items():
            outcome = asdict(Training(run).train())
            trained.append(said(run, outcome))
            path.write_text(json.dumps(outcome))

    monkeypatch.setattr(judge_run, "train_all", train_all)
    options = [f"--folder={tmp_path / 'runs'}", f"--report={tmp_path}", "--processes=1"]
    for stage in ("study", "study", "report"):
        assert main([stage, *options]) == 0
    assert len(trained) == 2  # the second time nothing was missing
    assert (tmp_path / PAGE).read_text().startswith("# What does the error")
    assert set(kept(tmp_path / "study.json")) == {RUN, Run("text", "sgd", 0.5, "exact", 1)}
    elsewhere = [f"--folder={tmp_path / 'elsewhere'}", *options[1:], "--restore"]
    assert main(["study", *elsewhere]) == 0
    assert len(trained) == 2  # restored from what was kept
