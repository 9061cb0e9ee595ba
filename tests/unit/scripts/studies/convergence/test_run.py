import json

import pytest

from scripts.studies.convergence import run as convergence
from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.study import key
from scripts.studies.convergence.training import Run

TINY = [
    Run("mlp", "sgd", 0.05, Arm(), 1, stretch=0.02),
    Run("mlp", "sgd", 0.05, Arm(-1, 1, 1, "local", warmup=2), 1, stretch=0.02),
]


@pytest.mark.slow
def test_finished_runs_are_kept(tmp_path, capsys):
    first = convergence.finish(TINY[:1], tmp_path, 1)
    assert "[1/1" in capsys.readouterr().out
    kept = (tmp_path / f"{key(TINY[0])}.json").read_text()
    outcomes = convergence.finish([*TINY, TINY[0]], tmp_path, 1)
    assert (tmp_path / f"{key(TINY[0])}.json").read_text() == kept
    assert outcomes[0] == first[0]
    assert [convergence.run_of(outcome) for outcome in outcomes] == TINY
    assert "[1/1" in capsys.readouterr().out  # the other one alone
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.slow
def test_a_report_of_what_is_finished(tmp_path, monkeypatch):
    finished, report = tmp_path / "finished", tmp_path / "report"
    rates = [Run("mlp", "sgd", lr, Arm(), 0, stretch=0.02) for lr in (0.05, 0.1)]
    monkeypatch.setattr(convergence, "rate_runs", lambda _: rates)
    monkeypatch.setattr(convergence, "final_runs", lambda best, seeds: [*TINY])
    words = ["final", "--folder", str(finished), "--report", str(report), "--processes", "1"]
    assert convergence.main(words) == 0
    assert "all late by 1, from step 2 on, local" in (report / "final.md").read_text()
    (setting,) = json.loads((report / "final.json").read_text())
    assert len(setting["arms"]) == 2
    assert (report / "mlp.png").exists()
    assert convergence.main([*words, "--only-report"]) == 0


def test_unknown_stages_are_refused(capsys):
    with pytest.raises(SystemExit):
        convergence.main(["everything"])
    assert "invalid choice" in capsys.readouterr().err
