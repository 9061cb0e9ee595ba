"""Commands that run a script."""

import sys

import click
import pytest

from deft_horovod.cli.launch.python_command import PythonCommand


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["python", "train.py", "-x", "1"], (sys.executable, (), ("train.py", "-x", "1"))),
        (["python3.11", "train.py"], (sys.executable, (), ("train.py",))),
        (["train.py", "--", "a"], (sys.executable, (), ("train.py", "--", "a"))),
        ([sys.executable, "train.py"], (sys.executable, (), ("train.py",))),
        (["-m", "json.tool", "a"], (sys.executable, (), ("-m", "json.tool", "a"))),
        (
            ["python", "-u", "-W", "ignore", "-Xdev", "-m", "json.tool"],
            (sys.executable, ("-u", "-W", "ignore", "-Xdev"), ("-m", "json.tool")),
        ),
    ],
)
def test_parts(words, parts):
    command = PythonCommand.parse(words)
    assert (command.interpreter, command.options, command.words) == parts


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["python"], "has to be a script or a module"),
        (["python", "-c", "print()"], "has to be a script or a module"),
        (["python", "-u", "-"], "has to be a script or a module"),
        (["python", "absent.py"], "there is no script absent.py"),
        (["python", "-m", "no_such_module_at_all"], "there is no module no_such_module_at_all"),
        (["torchrun", "train.py"], "torchrun is no Python script"),
        (["/nowhere/python", "train.py"], "there is no interpreter /nowhere/python"),
    ],
)
def test_mistakes(words, message):
    with pytest.raises(click.UsageError, match=message):
        PythonCommand.parse(words)


def test_another_module_runs_it():
    command = PythonCommand.parse(["python", "-u", "train.py", "--lr", "1"])
    assert command.name == "train.py"
    assert command.under(["profiler"], "--steps", "3") == [
        *(sys.executable, "-u", "-m", "profiler", "--steps", "3"),
        *("--", "train.py", "--lr", "1"),
    ]
    assert PythonCommand.parse(["-m", "json.tool"]).name == "json.tool"
