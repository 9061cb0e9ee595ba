import subprocess
import sys

import pytest

from deft_horovod import __version__
from deft_horovod.cli.main import SUBCOMMANDS
from tests.unit.support.example import call, fails, saved, succeeds


def test_the_version_is_told():
    assert succeeds("--version").output == f"deft-profile {__version__}\n"


def test_help_lists_every_subcommand_with_a_line():
    text = succeeds("--help").output
    for name in SUBCOMMANDS:
        line = next(line for line in text.splitlines() if line.strip().startswith(f"{name} "))
        assert len(line.split()) > 3
    assert "Exit status: 0" in text


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_has_help_that_fits(name):
    text = succeeds(name, "-h").output
    assert f"Usage: deft-profile {name}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_mistakes_in_the_command_are_told_with_status_2():
    assert "No such command 'layer'" in fails(2, "layer")
    assert "No such option" in fails(2, "--no-such-option")
    assert call().exit_code == 2


@pytest.mark.parametrize("name", ["layers", "plan", "simulate"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "profile"),
        ("{", "profile"),
        ("[1, 2]", "profile"),
        ('{"version": 1}', "version"),
        ('{"version": 2, "plan": []}', "profile"),
        ("\x00\x01", "profile"),
    ],
)
def test_files_that_are_no_profiles_are_told_with_status_1(tmp_path, name, content, said):
    path = tmp_path / "profile.json"
    path.write_text(content, encoding="utf-8")
    message = fails(1, name, path)
    assert message.startswith("Error: ")
    assert said in message


def test_a_missing_file_is_told(tmp_path):
    assert "deft-profile run" in fails(2, "layers", tmp_path / "none.json")


def test_it_starts_as_a_module_and_needs_no_torch(tmp_path):
    pure = "import sys, runpy\nfor n in ('torch', 'horovod'): sys.modules[n] = None\n"
    pure += "sys.argv[0] = 'deft-profile'\n"
    pure += "runpy.run_module('deft_horovod.cli.main', run_name='__main__')"
    command = [sys.executable, "-c", pure, "layers", saved(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "embedding" in done.stdout
