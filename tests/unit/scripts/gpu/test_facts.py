"""What is told of a machine, and what the build would lack there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.gpu import facts


def test_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "answer.json"
    monkeypatch.setenv("GPU_CHECK_RESULT", str(path))
    assert facts.main(["--device", "cpu"]) == 0
    numbers = json.loads(path.read_text())["numbers"]
    assert numbers["cores"] >= 1
    assert numbers["packages"]["torch"]
    assert facts.versions()["pytest"] == pytest.__version__
    monkeypatch.setattr(facts, "gpu", lambda: None)
    assert facts.main(["--device", "cuda"]) == 1, "a check on a GPU needs one"


def test_headline_says_what_the_build_lacks() -> None:
    found = {
        "gpu": {"name": "NVIDIA H200"},
        "packages": {"torch": "2.11.0+cu130"},
        "torch_cuda": "13.0",
        "nccl": "2.28.9",
        "python": "3.12.3",
        "cores": 16,
        "tools": {"g++": True, "make": False, "cmake": True},
        "python_headers": False,
    }
    assert facts.headline(found) == (
        "NVIDIA H200, torch 2.11.0+cu130, CUDA 13.0, NCCL 2.28.9, Python 3.12.3, 16 cores; "
        "the build lacks make, Python.h"
    )


def test_a_tool_that_is_not_there_says_nothing() -> None:
    assert facts.said_by("no-such-tool-here") == ""
    assert facts.said_by("false") == ""
    assert facts.said_by("echo", "hello") == "hello"
