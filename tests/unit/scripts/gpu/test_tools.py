"""Tools for a machine that has none: they run from where they are unpacked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.gpu import tools


@pytest.mark.skipif(not shutil.which("ip"), reason="there is no ip: apt-get install -y iproute2")
def test_they_run_elsewhere(tmp_path: Path) -> None:
    assert "ip" in tools.gather(tmp_path / "here")
    there = (tmp_path / "here").rename(tmp_path / "there")
    done = subprocess.run([there / "bin" / "ip", "-V"], capture_output=True, text=True, check=True)
    assert "iproute2" in done.stdout
    names = [path.name for path in (there / "lib").iterdir()]
    assert not [name for name in names if name.startswith(tools.NOT_TAKEN)]


def test_what_is_not_here_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "NAMES", ("no-such-tool",))
    assert tools.gather(tmp_path) == []
    assert not list((tmp_path / "bin").iterdir())
