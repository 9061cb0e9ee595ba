"""Profiles by deft-profile run, and as files for the simulator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deft_horovod.profile import Profile
from scripts.gpu.measure import profiles


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, models: str) -> tuple:
    answer = folder / "answer.json"
    monkeypatch.setenv("GPU_CHECK_RESULT", str(answer))
    status = profiles.main(["--models", models, "--device", "cpu", "--precision", "float32"])
    return status, json.loads(answer.read_text())


def test_a_profile_is_taken_and_extracted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "STEPS", 2)
    status, answer = run(tmp_path, monkeypatch, "tiny_gpt2")
    assert status == 0
    assert "computing on cpu in float32: tiny_gpt2 " in answer["headline"]
    results = tmp_path / "results.json"
    stages = {"profiles-tf32": answer, "facts": {"numbers": {}}}
    results.write_text(json.dumps({"stages": stages}))
    (path,) = profiles.extract(results, tmp_path / "files")
    assert path.name == "tiny_gpt2-tf32.json"
    profile = Profile.load(path)
    assert profile.steps == 2
    assert len(profile.tensors) == 28
    assert profile.compute_us > 0


def test_one_that_fails_is_told_and_not_extracted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, answer = run(tmp_path, monkeypatch, "no_such_model")
    assert status == 1
    assert answer["headline"].endswith("no_such_model: FAILED")
    results = tmp_path / "results.json"
    results.write_text(json.dumps({"stages": {"profiles-tf32": answer}}))
    assert profiles.extract(results, tmp_path / "files") == []
