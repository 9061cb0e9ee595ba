"""scripts/horovod/ray_and_spark.py: installs once, and says what went wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts.horovod import ray_and_spark


def pip_ends(monkeypatch: pytest.MonkeyPatch, status: int) -> list[list[str]]:
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, status, "", "no such package")

    monkeypatch.setattr(ray_and_spark, "make_environment", lambda folder: folder / "python")
    monkeypatch.setattr(ray_and_spark.subprocess, "run", run)
    return commands


def test_it_installs_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands = pip_ends(monkeypatch, 0)
    assert ray_and_spark.install(tmp_path) == 0
    assert ray_and_spark.install(tmp_path) == 0
    assert [command[-3:] for command in commands] == [[*ray_and_spark.PACKAGES]]


def test_failures_are_shown_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = pip_ends(monkeypatch, 1)
    assert ray_and_spark.install(tmp_path) == 1
    assert ray_and_spark.install(tmp_path) == 1
    assert len(commands) == 2
    assert "no such package" in capsys.readouterr().err
