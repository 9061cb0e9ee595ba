"""deft-profile run: what it starts, and what it shows."""

import json

import pytest
from click.testing import CliRunner

from deft_horovod.cli.main import main
from tests.places import ROOT
from tests.unit.support.jobs import invoke, make_jobs


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    return make_jobs(tmp_path, monkeypatch)


def test_one_rank_needs_no_launcher(jobs):
    jobs.answer = jobs.answer.model_copy(update={"size": 1})
    result = invoke("run", "--steps", "7", "--", "python", "train.py", "--lr", "0.1")
    assert result.exit_code == 0, result.output
    (command,) = jobs.commands
    assert command[1:3] == ["-m", "deft_horovod.job.profiled_script"]
    assert command[command.index("--steps") + 1] == "7"
    assert command[command.index("--") + 1 :] == ["train.py", "--lr", "0.1"]
    assert "deft-profile: this is the answer" in result.stderr
    assert "1 rank, 10 steps measured" in result.stdout


def test_torchrun_starts_ranks_that_meet_without_horovod(jobs):
    result = invoke("run", "--torchrun", "-np", "2", "--", "python", "train.py")
    assert result.exit_code == 0, result.output
    (command,) = jobs.commands
    assert command[1:3] == ["-m", "torch.distributed.run"]
    assert command[command.index("--nproc-per-node") + 1] == "2"
    asked = command.index("deft_horovod.job.over_torch")
    assert command[asked + 1] == "deft_horovod.job.profiled_script"


def test_several_ranks_are_started_by_horovodrun(jobs):
    assert invoke("run", "-np", "3", "python", "train.py").exit_code == 0
    (command,) = jobs.commands
    assert command[0].endswith("horovodrun")
    assert command[1:3] == ["-np", "3"]


def test_json_is_all_that_is_on_stdout(jobs):
    result = invoke("run", "--json", "python", "train.py")
    assert json.loads(result.stdout)["totals"]["bytes"] == 12


def test_the_help_is_what_the_documentation_quotes():
    page = ROOT / "docs" / "reference" / "deft-profile-run.md"
    printed = CliRunner().invoke(main, ["run", "--help"], terminal_width=78).output
    assert printed[printed.index("Options:") :] in page.read_text(encoding="utf-8")
