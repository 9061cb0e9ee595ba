"""deft-profile compare: what it starts, and what it shows."""

import json

import pytest
from click.testing import CliRunner

from deft_horovod.cli.main import main
from tests.places import ROOT
from tests.unit.support.jobs import comparison, invoke, make_jobs


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    jobs = make_jobs(tmp_path, monkeypatch)
    jobs.answer = comparison(300_000.0, 202_000.0)
    return jobs


def test_the_verdict_comes_first(jobs):
    result = invoke("compare", "-np", "2", "--", "python", "train.py", "--lr", "0.1")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("bucket: communication exposed 34% -> 2%, step 303.0 -> 204.0")
    (command,) = jobs.commands
    assert command[1:3] == ["-np", "2"]
    assert "deft_horovod.job.compared_script" in command
    assert command[command.index("--") + 1 :] == ["train.py", "--lr", "0.1"]


def test_options_reach_the_ranks_and_what_is_not_given_stays_the_scripts(jobs):
    words = ("--policy", "deft", "--max-merge", "2", "--steps", "4", "--rounds", "5")
    assert invoke("compare", "-np", "2", *words, "python", "train.py").exit_code == 0
    (command,) = jobs.commands
    assert "--policy deft --max-merge 2 --trial-steps 4 --trial-rounds 5" in " ".join(
        sorted_options(command)
    )
    assert "--max-delay" not in command


def sorted_options(command):
    order = ("--policy", "--max-merge", "--trial-steps", "--trial-rounds")
    return [word for name in order for word in (name, command[command.index(name) + 1])]


def test_json_is_all_that_is_on_stdout(jobs):
    result = invoke("compare", "-np", "2", "--json", "python", "train.py")
    data = json.loads(result.stdout)
    assert data["chosen"] == "bucket"
    assert data["speedup"] == pytest.approx(300 / 202)
    assert [arm["name"] for arm in data["arms"]] == ["stock", "bucket"]


def test_one_rank_has_nothing_to_compare(jobs):
    result = invoke("compare", "python", "train.py")
    assert (result.exit_code, jobs.commands) == (2, [])
    assert "there is nothing to compare on one rank" in " ".join(result.stderr.split())


def test_stock_is_compared_with_anyway(jobs):
    result = invoke("compare", "-np", "2", "--policy", "stock", "python", "train.py")
    assert (result.exit_code, jobs.commands) == (2, [])


def test_the_help_is_what_the_documentation_quotes():
    page = ROOT / "docs" / "reference" / "deft-profile-compare.md"
    printed = CliRunner().invoke(main, ["compare", "--help"], terminal_width=78).output
    assert printed[printed.index("Options:") :] in page.read_text(encoding="utf-8")
