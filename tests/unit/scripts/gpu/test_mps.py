"""The server of MPS runs while the check does, and no longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.gpu import mps


def test_without_the_tool_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with mps.running(tmp_path / "work") as there:
        assert not there
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("status", [0, 1])
def test_it_is_started_and_asked_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    said = tmp_path / "said"
    tool = tmp_path / mps.CONTROL
    lines = [
        "#!/bin/sh",
        f'if [ "$1" = -d ]; then echo "at $CUDA_MPS_PIPE_DIRECTORY" > {said}; exit {status}; fi',
        f"cat >> {said}",
    ]
    tool.write_text("\n".join(lines) + "\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def fails() -> None:
        with mps.running(tmp_path / "work") as there:
            assert there == (status == 0)
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert said.read_text() == f"at {tmp_path / 'work' / 'mps'}\nquit\n"
