"""What `run` and `compare` refuse, and what they make of a job's end."""

import os

import pytest

from deft_horovod.cli.launch import script_request as module
from deft_horovod.job.exit_report import ExitReport
from tests.unit.support.jobs import PROFILE, comparison, invoke, make_jobs

COMMANDS = {"run": ("run",), "compare": ("compare", "-np", "2")}


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    return make_jobs(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("words", "env", "message"),
    [
        ((), {}, "Missing argument"),
        (("python", "absent.py"), {}, "there is no script absent.py"),
        (("torchrun", "train.py"), {}, "torchrun is no Python script"),
        (("--steps", "0", "python", "train.py"), {}, "--steps"),
        (("--warmup", "2", "python", "train.py"), {}, "--warmup"),
        (("-np", "0", "python", "train.py"), {}, "-np"),
        (("-o", "absent/p.json", "python", "train.py"), {}, "there is no folder absent"),
        (("-o", "/proc/p.json", "python", "train.py"), {}, "cannot be written to"),
        (("python", "train.py"), {"DEFT_DISABLE": "1"}, "DEFT_DISABLE is set"),
        (("python", "train.py"), {"DEFT_POLICY": "none"}, "DEFT_POLICY = 'none'"),
        (("-np", "2", "python", "train.py"), {"HOROVOD_RANK": "0"}, "leave out -np"),
        (("--json", "python", "train.py"), {"HOROVOD_RANK": "1"}, "leave out -np and --json"),
    ],
)
def test_mistakes_end_it_before_anything_runs(jobs, monkeypatch, name, words, env, message):
    for variable, value in env.items():
        monkeypatch.setenv(variable, value)
    result = invoke(*COMMANDS[name], *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert jobs.commands == []


@pytest.mark.parametrize(
    ("name", "answer"), [("run", PROFILE), ("compare", comparison(300_000.0, 200_000.0))]
)
def test_an_answer_that_is_there_is_kept_unless_told_otherwise(jobs, tmp_path, name, answer):
    path = tmp_path / "answer.json"
    path.write_text("precious")
    words = (*COMMANDS[name], "-o", "answer.json")
    jobs.answer = answer
    refused = invoke(*words, "python", "train.py")
    assert (refused.exit_code, jobs.commands) == (2, [])
    assert "answer.json exists" in refused.stderr
    assert path.read_text() == "precious"
    assert invoke(*words, "--force", "python", "train.py").exit_code == 0
    assert type(answer).load(path) == answer


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("outcome", "status", "code", "message"),
    [
        (ExitReport(7, "train.py ended with status 7"), 7, 7, "ended with status 7"),
        (
            ExitReport(7, "train.py ended with status 7"),
            1,
            7,
            "ended with status 7",
        ),  # of horovodrun
        (ExitReport(1, "13 are needed"), 0, 1, "13 are needed"),
        (None, 1, 1, "train.py ended with status 1 and left no word"),
        (None, 0, 1, "left no word"),
        (None, -9, 137, "was ended by signal 9"),
        (None, 130, 130, "train.py was interrupted; no "),
    ],
)
def test_the_end_of_the_job_is_told(jobs, tmp_path, name, outcome, status, code, message):
    jobs.outcome, jobs.status = outcome, status
    result = invoke(*COMMANDS[name], "python", "train.py")
    assert result.exit_code == code
    assert message in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize("name", COMMANDS)
def test_under_horovodrun_it_becomes_the_rank(jobs, monkeypatch, tmp_path, name):
    became = []
    monkeypatch.setattr(os, "execv", lambda path, words: became.append((path, words)))
    monkeypatch.setattr(module, "run_job", None)
    monkeypatch.setenv("HOROVOD_RANK", "1")
    (tmp_path / "answer.json").touch()  # only rank 0 would write it
    invoke(name, "-o", "answer.json", "python", "train.py")
    ((path, words),) = became
    assert words[0] == path
    assert words[1] == "-m"
    assert "--folder" not in words


def test_without_horovodrun_it_says_so(jobs, monkeypatch, tmp_path):
    monkeypatch.setattr(module.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    result = invoke("run", "-np", "2", "python", "train.py")
    assert result.exit_code == 2
    assert "-np needs horovodrun" in result.stderr
