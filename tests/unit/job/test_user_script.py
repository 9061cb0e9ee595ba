"""A user's script as the main program; what it looks like from inside is in test_main.py."""

import subprocess
import sys

import pytest

from deft_horovod.job.user_script import problem_with
from tests.places import ROOT


def run(folder, *words):
    code = f"import sys; from deft_horovod.job.user_script import run; run({list(words)!r})"
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((__file__,), None),
        (("-m", "json.tool", "more"), None),
        (("absent.py",), "there is no script absent.py"),
        (("-m",), "-m needs the name of a module"),
        (("-m", "no_such_module_at_all"), "there is no module no_such_module_at_all"),
        (("-m", "no_such_package.module"), "there is no module no_such_package.module"),
    ],
)
def test_what_is_wrong_is_said(words, problem):
    assert problem_with(words) == problem


@pytest.mark.parametrize("words", [("train.py",), ("-m", "train")])
def test_it_is_the_main_program_beside_its_own_modules(tmp_path, words):
    (tmp_path / "beside.py").write_text("value = 7")
    (tmp_path / "train.py").write_text(
        "import sys, beside\nprint(__name__, beside.value, sys.argv[1:])\nsys.exit(3)"
    )
    ended = run(tmp_path, *words, "--", "a b")
    assert ended.stdout == "__main__ 7 ['--', 'a b']\n", ended.stderr
    assert ended.returncode == 3
