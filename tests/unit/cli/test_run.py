"""deft-profile run: what it refuses, and what it makes of a job's end."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from deft_horovod.cli import run as module
from deft_horovod.cli.main import main
from deft_horovod.cli.outcome import Outcome
from deft_horovod.profile import Profile, Tensor

PROFILE = Profile.assumed(1).model_copy(
    update={"tensors": (Tensor(name="w", shape=(3,), dtype="float32"),), "steps": 10, "size": 1}
)


class Jobs:
    """In the place of real ones."""

    def __init__(self):
        self.commands = []
        self.status = 0
        self.outcome = Outcome(0, "this is the profile of SGD")

    def __call__(self, command, folder, *, quiet_stdout=False):
        self.commands.append(list(command))
        if self.outcome is not None:
            self.outcome.leave(folder, 0)
            if not self.outcome.status:
                PROFILE.save(command[command.index("--output") + 1])
        return self.status


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    for variable in list(os.environ):
        if variable.startswith(("DEFT_", "HOROVOD_", "OMPI_", "PMI_")):
            monkeypatch.delenv(variable)
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    jobs = Jobs()
    monkeypatch.setattr(module, "run_job", jobs)
    return jobs


def invoke(*words):
    return CliRunner().invoke(main, ["run", *words])


def test_one_rank_needs_no_launcher(jobs):
    result = invoke("--steps", "7", "--", "python", "train.py", "--lr", "0.1")
    assert result.exit_code == 0, result.output
    (command,) = jobs.commands
    assert command[1:3] == ["-m", "deft_horovod.cli.profiled_script"]
    assert command[command.index("--steps") + 1] == "7"
    assert command[command.index("--") + 1 :] == ["train.py", "--lr", "0.1"]
    assert "deft-profile: this is the profile of SGD" in result.stderr
    assert "1 rank, 10 steps measured" in result.stdout


def test_several_ranks_are_started_by_horovodrun(jobs):
    assert invoke("-np", "3", "python", "train.py").exit_code == 0
    (command,) = jobs.commands
    assert command[0].endswith("horovodrun")
    assert command[1:3] == ["-np", "3"]


def test_json_is_all_that_is_on_stdout(jobs):
    result = invoke("--json", "python", "train.py")
    assert json.loads(result.stdout)["totals"]["bytes"] == 12


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
def test_mistakes_end_it_before_anything_runs(jobs, monkeypatch, words, env, message):
    for variable, value in env.items():
        monkeypatch.setenv(variable, value)
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert jobs.commands == []


def test_a_profile_that_is_there_is_kept_unless_told_otherwise(jobs, tmp_path):
    (tmp_path / "profile.json").write_text("precious")
    refused = invoke("python", "train.py")
    assert (refused.exit_code, jobs.commands) == (2, [])
    assert "profile.json exists" in refused.stderr
    assert (tmp_path / "profile.json").read_text() == "precious"
    assert invoke("--force", "python", "train.py").exit_code == 0
    assert Profile.load(tmp_path / "profile.json") == PROFILE


@pytest.mark.parametrize(
    ("outcome", "status", "code", "message"),
    [
        (Outcome(7, "train.py ended with status 7"), 7, 7, "ended with status 7"),
        (Outcome(7, "train.py ended with status 7"), 1, 7, "ended with status 7"),  # of horovodrun
        (Outcome(1, "13 are needed"), 0, 1, "13 are needed"),
        (None, 1, 1, "train.py ended with status 1 and left no word"),
        (None, 0, 1, "left no word"),
        (None, -9, 137, "was ended by signal 9"),
        (None, 130, 130, "train.py was interrupted; no profile was written"),
    ],
)
def test_the_end_of_the_job_is_told(jobs, tmp_path, outcome, status, code, message):
    jobs.outcome, jobs.status = outcome, status
    result = invoke("python", "train.py")
    assert result.exit_code == code
    assert message in result.stderr
    assert not (tmp_path / "profile.json").exists()


def test_under_horovodrun_it_becomes_the_rank(jobs, monkeypatch, tmp_path):
    became = []
    monkeypatch.setattr(os, "execv", lambda path, words: became.append((path, words)))
    monkeypatch.setattr(module, "run_job", None)
    monkeypatch.setenv("HOROVOD_RANK", "1")
    (tmp_path / "profile.json").touch()  # only rank 0 would write it
    invoke("python", "train.py")
    ((path, words),) = became
    assert words[0] == path
    assert words[1:3] == ["-m", "deft_horovod.cli.profiled_script"]
    assert "--folder" not in words


def test_without_horovodrun_it_says_so(jobs, monkeypatch, tmp_path):
    monkeypatch.setattr(module.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    result = invoke("-np", "2", "python", "train.py")
    assert result.exit_code == 2
    assert "-np needs horovodrun" in result.stderr


def test_the_help_is_what_the_documentation_quotes():
    page = Path(__file__).resolve().parents[3] / "docs" / "deft-profile-run.md"
    printed = CliRunner().invoke(main, ["run", "--help"], terminal_width=78).output
    assert printed[printed.index("Options:") :] in page.read_text(encoding="utf-8")
