"""What the documentation shows must run, and what it lists must be complete."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deft_horovod import errors
from deft_horovod.cli.main import SUBCOMMANDS
from deft_horovod.config import Config
from deft_horovod.policies import registry
from deft_horovod.profile import (
    FormatCost,
    LinkCost,
    LinkProfile,
    LinkSample,
    ModuleProfile,
    Profile,
    Spread,
    Tensor,
)
from deft_horovod.runtime.measure.step_clock import StepClock
from deft_horovod.runtime.stats import step_stats
from tests.places import ROOT

DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
GUIDE, REFERENCE, INTERNALS = DOCS / "guide", DOCS / "reference", DOCS / "internals"
SCHEDULERS = sorted(GUIDE.glob("schedulers/*.md"))
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NEEDS_NO_CLUSTER = {
    *(
        "affordable.py",
        "deft.py",
        "formats.py",
        "hide.py",
        "plans.py",
        "predict.py",
        "profiles.py",
        "schedulers.py",
    ),
}
PICTURES = DOCS / "images" / "schedulers"
PURE_RUN = """
import runpy, sys
for name in ("torch", "horovod"):
    sys.modules[name] = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def page_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(language: str) -> list:
    return [
        pytest.param(body, id=f"{page_name(page)}-{number}")
        for page in PAGES
        for number, (found, body) in enumerate(FENCE.findall(page.read_text(encoding="utf-8")))
        if found == language
    ]


def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def table_words(page: Path) -> set[str]:
    """What stands in backquotes in the first column of a table."""
    rows = re.findall(r"^\| ([^|]*)\|", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row)}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_resolve(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page_name(page)} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page_name(page)} links to {link}"


def test_index_lists_every_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = set(LINK.findall(index))
    rooms = (DOCS, GUIDE, REFERENCE, INTERNALS, DOCS / "studies")
    named = (*(page for room in rooms for page in room.glob("*.md")), *SCHEDULERS, *EXAMPLES)
    assert {str(page.relative_to(DOCS)) for page in named} - {"index.md"} <= linked


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_compile(code: str) -> None:
    compile(code, "block", "exec")


@pytest.mark.parametrize("code", blocks("bash"))
def test_bash_blocks_name_scripts_that_exist(code: str) -> None:
    done = subprocess.run(["bash", "-n"], input=code, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    for script in re.findall(r"(?:scripts/|\.ci/)[\w./]+", code):
        assert (ROOT / script).is_file(), script


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_named_files_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:scripts|tests|csrc|docs|deft_horovod)/[\w./]+)`", text):
        assert (ROOT / name).exists(), f"{page_name(page)} names {name}"


def run_pure(example: str, *arguments: str) -> str:
    """Without torch and Horovod."""
    command = [sys.executable, "-c", PURE_RUN, str(DOCS / "examples" / example), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_plan_example_runs_without_torch_and_is_quoted() -> None:
    printed = run_pure("plans.py")
    priority = printed.split("\n\nfirst difference:")[0]
    priority = priority[priority.index("plan 'priority'") :]
    assert priority in (REFERENCE / "plan.md").read_text(encoding="utf-8")
    assert "read back unchanged: True" in printed


def test_examples_of_policies_that_hide_communication_are_what_is_printed() -> None:
    printed = run_pure("hide.py")
    text = (GUIDE / "policies.md").read_text(encoding="utf-8")
    section = text[text.index("## least_stale") : text.index("## deft")]
    quoted = [body for language, body in FENCE.findall(section) if language == "text"]
    assert len(quoted) == 2
    for body in quoted:
        assert body in printed


def test_example_of_wire_formats_is_what_is_printed() -> None:
    printed = run_pure("formats.py").rstrip()
    assert f"```text\n{printed}\n```" in (GUIDE / "wire-formats.md").read_text(encoding="utf-8")


def test_example_of_the_preserver_is_what_is_printed() -> None:
    printed = run_pure("affordable.py").rstrip()
    assert f"```text\n{printed}\n```" in (INTERNALS / "preserver.md").read_text(encoding="utf-8")


def test_prediction_example_is_quoted_and_can_be_drawn(tmp_path: Path) -> None:
    printed = run_pure("predict.py", str(tmp_path))
    late = printed[printed.index("plan 'hand-made'") :].rstrip()
    assert late in (REFERENCE / "plan.md").read_text(encoding="utf-8")
    files = [str(tmp_path / name) for name in ("plan.json", "profile.json", "plan.png")]
    command = [sys.executable, "-m", "deft_horovod.picture.timeline", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout.rstrip()) == (0, late), done.stderr
    assert (tmp_path / "plan.png").stat().st_size > 0


def test_profile_example_runs_without_torch_and_is_quoted() -> None:
    command = [sys.executable, "-c", PURE_RUN, str(DOCS / "examples" / "profiles.py")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60
    )
    assert done.returncode == 0, done.stderr
    printed, _, said = done.stdout.partition("\n\n")
    quoted = dict(FENCE.findall((REFERENCE / "profile.md").read_text(encoding="utf-8")))["json"]
    assert quoted.strip() == printed
    assert Profile.from_json(quoted).compute_us == 152_500
    assert "without communication a step takes 152.5 ms" in said
    assert "read back unchanged: True" in said


def test_every_field_of_a_profile_is_documented() -> None:
    parts = (Profile, LinkProfile, LinkCost, FormatCost, LinkSample, ModuleProfile, Tensor, Spread)
    page = REFERENCE / "profile.md"
    tables = "\n".join(re.findall(r"^\|.*\|$", page.read_text(encoding="utf-8"), re.MULTILINE))
    known = set(re.findall(r"`([^`]+)`", tables))
    fields = {name for part in parts for name in part.model_fields}
    assert fields <= known


def test_example_of_deft_is_quoted() -> None:
    page = (GUIDE / "policies.md").read_text(encoding="utf-8")
    bucket, deft = run_pure("deft.py").split("\n\nplan 'deft'")
    assert "\n".join(bucket.splitlines()[:5]) in page
    head, rest = ("plan 'deft'" + deft).split("\n\nbucket 0:")
    assert head in page
    assert rest[rest.index("order on link") :].rstrip() in page


@pytest.fixture(scope="module")
def schedulers() -> dict[str, Any]:
    """What docs/examples/schedulers.py is made of."""
    return runpy.run_path(str(DOCS / "examples" / "schedulers.py"), run_name="schedulers")


def test_guide_to_the_schedulers_is_what_the_example_prints_and_draws(tmp_path: Path) -> None:
    table = run_pure("schedulers.py", str(tmp_path)).rstrip()
    assert f"```text\n{table}\n```" in (GUIDE / "schedulers.md").read_text(encoding="utf-8")
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    there = {path.name: path.read_text(encoding="utf-8") for path in PICTURES.iterdir()}
    assert there.keys() == drawn.keys()
    assert [name for name in drawn if drawn[name] != there[name]] == []


def test_every_picture_of_a_scheduler_has_its_predicted_step(schedulers: dict[str, Any]) -> None:
    text = (GUIDE / "schedulers.md").read_text(encoding="utf-8")
    shown = dict(
        re.findall(r"\(\.\./images/schedulers/([^)]+)\)\n\n(Predicted step: [^.]*\.)", text)
    )
    outcomes = map(schedulers["outcome"], schedulers["POLICIES"])
    assert shown == {one.file: one.sentence for one in outcomes if one.file}


@pytest.mark.parametrize("page", SCHEDULERS, ids=lambda page: page.stem)
def test_worked_examples_of_schedulers_are_what_is_planned(
    page: Path, schedulers: dict[str, Any]
) -> None:
    rows = re.findall(
        r"^\| (\d(?:\+\d)*) \| ([\d.]+) \| ([\d.]+) \| [^|]*\|$",
        page.read_text(encoding="utf-8").partition("| layers | from | to |")[2],
        re.MULTILINE,
    )
    if page.stem in {"dcredit", "usbyte"}:  # their examples are those of the policies' own tests
        assert not rows
        return
    title = {"bytescheduler": "bytescheduler, tune=false"}.get(page.stem, page.stem)
    assert [(layers, float(begin), float(end)) for layers, begin, end in rows] == [
        (layers, round(begin, 1), round(end, 1))
        for layers, begin, end in schedulers["outcome"](title).travels()
    ]


def test_every_policy_is_explained_and_drawn() -> None:
    policies, guide = GUIDE / "policies.md", GUIDE / "schedulers.md"
    explained = {page.stem for page in SCHEDULERS} | anchors(policies)
    drawn = {path.stem for path in PICTURES.iterdir()}
    names = set(registry())
    assert names <= explained
    assert names <= table_words(policies)
    assert names <= table_words(guide)
    assert names - {"auto"} <= drawn
    assert {page.stem for page in SCHEDULERS} <= names


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", [e for e in EXAMPLES if e.name not in NEEDS_NO_CLUSTER], ids=lambda path: path.name
)
def test_training_examples_run_on_two_ranks(example: Path, tmp_path: Path) -> None:
    assert f"horovodrun -np 2 python {page_name(example)}" in example.read_text(encoding="utf-8")
    launcher = Path(sys.executable).parent / "horovodrun"
    command = [str(launcher), "-np", "2", sys.executable, str(example)]
    # Two ranks with a thread for each core fight over the cores: six times as long on two of them.
    # A rank that is late by half a minute would end the other.
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HOROVOD_GLOO_TIMEOUT_SECONDS": "80"}
    # As docs/reference/metrics.md says.
    env |= {"DEFT_METRICS": str(tmp_path / "metrics.csv"), "DEFT_METRICS_STEPS": "5"}
    job = subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        output, _ = job.communicate(timeout=90)
    finally:
        if job.poll() is None:
            job.terminate()
            job.wait(20)
    assert job.returncode == 0, output
    assert "[0]<stdout>:" in output
    assert "False" not in output
    if example.name == "train.py":
        rows = (tmp_path / "metrics.csv").read_text(encoding="utf-8").splitlines()
        steps = rows[0].split(",").index("steps")
        assert [row.split(",")[steps] for row in rows[1:]] == ["5", "10", "15", "20"]


@pytest.mark.parametrize(
    ("command", "printed"),
    re.findall(
        r"```bash\n(deft-profile [^\n]*)\n```\n\n```text\n(.*?)\n```",
        (REFERENCE / "deft-profile.md").read_text(encoding="utf-8"),
        re.DOTALL,
    ),
)
def test_examples_of_deft_profile_are_what_is_printed(command: str, printed: str) -> None:
    words = [sys.executable, "-m", "deft_horovod.cli.main", *command.split()[1:]]
    terminal = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd=ROOT, env=terminal, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.rstrip().splitlines()] == printed.splitlines()


@pytest.mark.parametrize("command", ["capacity", "consolidate"])
def test_guide_to_machines_is_what_is_printed(command: str, tmp_path: Path) -> None:
    text = (GUIDE / "capacity.md").read_text(encoding="utf-8")
    found = re.search(
        rf"```bash\n(deft-profile {command} [^\n]*)\n```\n\n```text\n(.*?)\n```", text, re.DOTALL
    )
    assert found is not None
    words = found[1].replace("capacity.png", str(tmp_path / "capacity.png")).split()[1:]
    done = subprocess.run(
        [sys.executable, "-m", "deft_horovod.cli.main", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80"},
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.rstrip().splitlines()] == found[2].splitlines()
    if command == "capacity":
        jobs = (DOCS / "examples" / "capacity" / "jobs.yaml").read_text(encoding="utf-8")
        assert f"```yaml\n{jobs.rstrip()}\n```" in text
        assert (tmp_path / "capacity.png").stat().st_size > 0


def test_every_subcommand_of_deft_profile_is_documented() -> None:
    page = REFERENCE / "deft-profile.md"
    assert set(SUBCOMMANDS) <= anchors(page) & table_words(page)
    text = page.read_text(encoding="utf-8")
    for name in SUBCOMMANDS:
        assert re.search(rf"^deft-profile {name} ", text, re.MULTILINE), name


def test_every_error_is_documented() -> None:
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.DeftError)
    }
    page = REFERENCE / "errors.md"
    assert classes == {word for word in table_words(page) if word.endswith("Error")}
    assert {name.lower() for name in classes} <= anchors(page)


def test_every_statistic_is_documented() -> None:
    link = SimpleNamespace(name="horovod")
    seen = SimpleNamespace(bytes=1, messages=1, busy_us=1)
    planned = SimpleNamespace(
        plan=SimpleNamespace(
            hash=lambda: "0", links=[link], prediction=None, buckets=(), arenas=(), slots=()
        ),
        session=SimpleNamespace(buffer_bytes=1),
        sent=lambda: [seen],
        rounding_errors=list,
        rest_bytes=0,
        late=False,
    )
    # These are added by the engine and the pilot.
    above = {"policy", "plans", "dropped", "dropped_rests"}
    above |= {"phase", "running", "replans", "trials_us"}
    keys = {*above, *step_stats(StepClock(), planned)}  # type: ignore[arg-type]
    assert keys <= table_words(REFERENCE / "metrics.md")


def test_status_table_names_every_policy() -> None:
    rows = re.findall(
        r"^\|.*\|$", (REFERENCE / "features.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    table = "\n".join(rows)
    assert [name for name in registry() if f"`{name}`" not in table] == []


def test_options_are_quoted_as_the_command_line_prints_them() -> None:
    assert Config.documentation() in (REFERENCE / "config.md").read_text(encoding="utf-8")


def test_patterns_that_work_are_tests() -> None:
    text = (REFERENCE / "semantics.md").read_text(encoding="utf-8").partition("## What works")[2]
    named = re.findall(r"`(\w+)\.(\w+)` \|$", text, re.MULTILINE)
    assert len(named) >= 84
    assert len(named) == len({*named})
    for program, case in named:
        (path,) = (ROOT / "tests" / "parallel" / "scripts").rglob(f"{program}.py")
        assert f"def case_{case}(" in path.read_text(encoding="utf-8"), f"{program}.{case}"
