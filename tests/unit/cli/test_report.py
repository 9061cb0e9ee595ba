"""deft-profile report: which files it takes, which options, where the page goes."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from deft_horovod.comparison import Comparison
from deft_horovod.comparison.table import to_data
from deft_horovod.plan import Plan
from deft_horovod.profile import Profile
from tests.places import ROOT
from tests.unit.support.example import call, fails, profile, saved, succeeds
from tests.unit.support.reports import Page, comparison, empty, many_tensors, plan_of

DOCS = ROOT / "docs"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def compared(folder, chosen=2):
    path = folder / "comparison.json"
    comparison(chosen).save(path)
    return path


def read(path):
    return Page(path.read_text(encoding="utf-8")).text


def test_a_comparison_says_what_was_measured(tmp_path):
    result = succeeds("report", compared(tmp_path))
    assert result.stdout.startswith("deft (late): communication exposed 26% -> 5%")
    assert result.stderr == "wrote report.html\n"
    assert "measured in the job itself" in read(tmp_path / "report.html")


def test_where_stock_is_kept_the_page_says_so(tmp_path):
    succeeds("report", compared(tmp_path, chosen=0))
    assert "Stock Horovod is kept" in read(tmp_path / "report.html")


def test_a_profile_says_what_is_predicted(tmp_path):
    result = succeeds("report", saved(tmp_path), "-o", "page.html")
    assert result.stdout.startswith("predicted for least_stale: ")
    assert "Predicted: " in read(tmp_path / "page.html")
    assert not (tmp_path / "report.html").exists()


def test_options_reach_the_policy(tmp_path):
    path = saved(tmp_path)
    arguments = ("report", path, "--policy", "deft", "--max-merge", 1, "--max-delay", 2, "--json")
    data = json.loads(succeeds(*arguments).stdout)
    assert data["policy"] == "deft"
    assert (data["facts"]["max merge"], data["facts"]["max delay"]) == ("1", "2")
    assert {kind["merged"] for kind in data["staleness"]} == {1}


def test_links_are_chosen_by_name(tmp_path):
    path = saved(tmp_path, links=("horovod", "second"))
    arguments = ("report", path, "--policy", "deft", "--links", "second", "--json")
    data = json.loads(succeeds(*arguments).stdout)
    rides = {ride for b in data["buckets"] for f in b["fates"] for ride in f["rides"]}
    assert all(ride.endswith("on link second") for ride in rides)
    assert "no link third" in fails(2, "report", path, "--links", "third")


def test_a_plan_of_a_file_is_taken(tmp_path):
    path, plan = saved(tmp_path), plan_of(profile(), "deft")
    plan.save(tmp_path / "plan.json")
    data = json.loads(succeeds("report", path, "--plan", "plan.json", "--json").stdout)
    assert data["facts"]["plan"] == plan.hash()[:12]
    assert data["facts"]["plan file"] == "plan.json"
    assert data["floor_us"] == plan.prediction.bound_us


def test_what_was_predicted_from_other_measurements_is_not_believed(tmp_path):
    plan = plan_of(profile(), "deft")
    other = profile().model_copy(update={"forward_us": 60_000.0})
    other.save(tmp_path / "other.json")
    plan.save(tmp_path / "plan.json")
    data = json.loads(succeeds("report", "other.json", "--plan", "plan.json", "--json").stdout)
    assert data["floor_us"] is None
    assert data["compute_us"] == 185_000.0


def test_devices_and_compression_are_those_of_the_plan(tmp_path):
    plan = plan_of(profile(), "bucket")
    arenas = tuple(a.model_copy(update={"device": "cuda"}) for a in plan.arenas)
    plan.model_copy(update={"arenas": arenas}).save(tmp_path / "plan.json")
    succeeds("report", saved(tmp_path), "--plan", "plan.json")


def test_a_plan_of_stock_keeps_stock(tmp_path):
    Plan(policy="stock").save(tmp_path / "plan.json")
    succeeds("report", saved(tmp_path), "--plan", "plan.json")
    assert "Stock Horovod is kept" in read(tmp_path / "report.html")


def test_a_plan_of_another_model_is_refused(tmp_path):
    plan_of(many_tensors(10), "bucket").save(tmp_path / "plan.json")
    message = fails(1, "report", saved(tmp_path), "--plan", "plan.json")
    assert "was not made for this model" in message
    plan_of(many_tensors(3), "bucket").save(tmp_path / "plan.json")
    assert "not made for this model" in fails(1, "report", saved(tmp_path), "--plan", "plan.json")
    assert not (tmp_path / "report.html").exists()


def test_one_rank_without_a_link_has_a_page_of_layers(tmp_path):
    path = saved(tmp_path, links=(), size=1)
    assert "no link" in succeeds("report", path).stdout
    assert "Nothing travels on one rank" in read(tmp_path / "report.html")
    assert "two ranks or more" in fails(1, "report", path, "--policy", "deft", "--force")


def test_a_model_without_parameters(tmp_path):
    empty().save(tmp_path / "empty.json")
    succeeds("report", "empty.json")


def test_json_goes_to_the_terminal_or_to_a_file(tmp_path):
    path = compared(tmp_path)
    data = json.loads(succeeds("report", path, "--json").stdout)
    assert data["measured"]
    assert not (tmp_path / "report.html").exists()
    succeeds("report", path, "--json", "-o", "data.json")
    assert json.loads((tmp_path / "data.json").read_text(encoding="utf-8")) == data


@pytest.mark.parametrize("options", [(), ("-o", "report.html"), ("--json", "-o", "report.html")])
def test_a_report_that_is_there_is_kept(tmp_path, options):
    path, kept = compared(tmp_path), tmp_path / "report.html"
    kept.write_text("mine", encoding="utf-8")
    assert "--force" in fails(2, "report", path, *options)
    assert kept.read_text(encoding="utf-8") == "mine"
    succeeds("report", path, *options, "--force")
    assert kept.read_text(encoding="utf-8") != "mine"


def test_what_cannot_be_written_is_told_and_leaves_nothing(tmp_path):
    path = compared(tmp_path)
    # Not even root may write there.
    assert "could not be written" in fails(1, "report", path, "-o", "/proc/report.html")
    assert "there is no folder" in fails(2, "report", path, "-o", "none/report.html")
    (tmp_path / "folder").mkdir()
    assert "is a directory" in fails(2, "report", path, "-o", "folder")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["comparison.json", "folder"]


def test_a_disk_that_is_full_leaves_nothing_half_written(tmp_path, monkeypatch):
    path = compared(tmp_path)

    def full(self, content):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    assert "No space left" in fails(1, "report", path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["comparison.json"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1, 2]", "wrong kind"),
        ("{}", "not a profile"),
        ('{"version": 1, "plan": []}', "neither a profile nor a comparison"),
        ('{"version": 1, "ready_order": []}', "another version"),
        ('{"version": 9, "arms": []}', "another version"),
        ('{"version": 1, "arms": []}', "comparison"),
        ('{"verdict": "", "arms": []}', "only the summary of a comparison"),
        ('{"version": 2, "ready_order": ["\\ud800"]}', "profile"),
        ("\x00\x01", "not JSON"),
    ],
)
def test_files_that_are_something_else(tmp_path, content, said):
    (tmp_path / "file.json").write_text(content, encoding="utf-8")
    assert said in fails(1, "report", "file.json")
    assert not (tmp_path / "report.html").exists()


def test_text_that_is_no_text(tmp_path):
    (tmp_path / "file.json").write_bytes(b"\xff\xfe\x00")
    assert "not text" in fails(1, "report", "file.json")


def test_a_missing_file_is_told():
    message = fails(2, "report", "none.json")
    assert "deft-profile run" in message
    assert "deft-profile compare" in message
    assert "Missing argument" in fails(2, "report")


def test_options_that_exclude_each_other(tmp_path):
    plan_of(profile(), "bucket").save(tmp_path / "plan.json")
    path = saved(tmp_path)
    message = fails(2, "report", path, "--plan", "plan.json", "--policy", "deft")
    assert "--policy would make another" in message
    assert "--max-delay is for a profile" in fails(
        2, "report", compared(tmp_path), "--max-delay", 1
    )
    assert "--plan is for a profile" in fails(
        2, "report", compared(tmp_path), "--plan", "plan.json"
    )
    assert "stock" in fails(2, "report", path, "--policy", "stock")


def test_a_profile_without_tensors_says_what_to_do(tmp_path):
    one = Profile.assumed(3).model_copy(update={"links": profile().links})
    one.save(tmp_path / "profile.json")
    assert "take the profile anew" in fails(1, "report", "profile.json")


def test_the_summary_of_compare_names_the_file_to_take(tmp_path):
    (tmp_path / "summary.json").write_text(json.dumps(to_data(comparison())), encoding="utf-8")
    assert "comparison.json" in fails(1, "report", "summary.json")


def test_it_needs_neither_torch_nor_horovod(tmp_path):
    pure = "import sys, runpy\nfor n in ('torch', 'horovod', 'matplotlib'): sys.modules[n] = None\n"
    pure += "sys.argv[0] = 'deft-profile'\n"
    pure += "runpy.run_module('deft_horovod.cli.main', run_name='__main__')"
    command = [sys.executable, "-c", pure, "report", str(compared(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").stat().st_size > 0


def test_comparisons_are_read_as_they_were_written(tmp_path):
    path = compared(tmp_path)
    assert Comparison.load(path) == comparison()
    shutil.copy(path, tmp_path / "profile.json")  # whatever it is called
    assert call("report", "profile.json").exit_code == 0


def documented():
    return (DOCS / "reference" / "deft-profile-report.md").read_text(encoding="utf-8")


def test_what_the_documentation_shows_is_what_is_printed():
    command, printed = re.search(
        r"```bash\ndeft-profile ([^\n]*)\n```\n\n```text\n([^\n]*)\n```", documented()
    ).groups()
    words = [word.replace("docs/", f"{DOCS}/") for word in command.split()]
    assert succeeds(*words).stdout == printed + "\n"


def test_options_are_quoted_as_the_help_prints_them():
    text = succeeds("report", "--help").stdout
    told = " ".join(text[text.index("Options:") :].split())
    assert told in " ".join(documented().split())
