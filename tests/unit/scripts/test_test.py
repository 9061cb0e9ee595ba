"""scripts/test.sh: which suites there are, what of them runs without an argument, and where."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import JOBS_OF, PER_TEST, together
from tests.places import ROOT

SCRIPT = ROOT / "scripts" / "test.sh"
TEXT = SCRIPT.read_text(encoding="utf-8")
RANKS = [ROOT / "tests" / name for name in ("parallel", "conformance", "faults")]


def test_every_folder_with_tests_is_a_suite() -> None:
    (usage,) = re.findall(r"scripts/test\.sh \[([a-z|]+)\]", TEXT)
    folders = {path.name for path in (ROOT / "tests").iterdir() if any(path.rglob("test_*.py"))}
    # mpi runs some of `parallel` again.
    assert folders | {"all", "cpp", "mpi", "unit"} == set(usage.split("|"))


@pytest.mark.parametrize("word", ["none", "-k"])
def test_no_suite_ends_with_the_usage(word: str) -> None:
    done = subprocess.run(
        [SCRIPT, word], capture_output=True, text=True, check=False, timeout=20, cwd=ROOT
    )
    assert done.returncode == 2
    assert "scripts/test.sh [all|unit|" in done.stderr


def test_what_runs_without_an_argument_exists() -> None:
    named = re.findall(r"(tests/[\w/]+/test_\w+\.py)(?:::(\w+))?", TEXT)
    assert {Path(path).parts[1] for path, _ in named} == {
        *(p.name for p in RANKS),
        "cluster",
    }
    for path, function in named:
        sought = f"def {function}(" if function else "test_case = "
        assert sought in (ROOT / path).read_text(encoding="utf-8")


def test_one_worker_runs_what_shares_a_job() -> None:
    replicas = "tests/parallel/runtime/test_replicas.py::test_replicas_stay_equal[2-a]"
    parity = "tests/parallel/runtime/test_parity.py::test_parity[4-b]"
    assert together(replicas) == together(parity)
    links = [
        "tests/parallel/runtime/test_links.py::test_case[a]",
        "tests/parallel/runtime/test_links.py::test_b",
    ]
    assert together(links[0]) == together(links[1]) != together(parity)
    killed = "tests/parallel/failures/test_killed_peer.py::test_survivors"
    assert together(f"{killed}[1]") != together(f"{killed}[2]")


def test_exceptions_of_it_are_files() -> None:
    files = {path.name for folder in RANKS for path in folder.rglob("test_*.py")}
    assert {*PER_TEST, *JOBS_OF, *JOBS_OF.values()} <= files
