"""An environment made from this one sees its packages, and keeps its own to itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.gpu import venv


def test_packages_of_the_outer_one_are_there_and_pip_installs_inside(tmp_path: Path) -> None:
    inner = tmp_path / "venv"
    venv.make(inner)
    package = tmp_path / "inside-1.0-py3-none-any.whl"
    make_wheel(package)
    python = str(inner / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(package)]
    subprocess.run(install, check=True, capture_output=True, timeout=60)
    code = "import inside, pytest, sys; print(sys.prefix, inside.__file__, pytest.__file__)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    prefix, own, outer = done.stdout.split()
    assert Path(prefix) == inner
    assert Path(own).is_relative_to(inner)
    assert Path(outer).is_relative_to(sys.prefix)


def test_start_up_files_of_the_outer_one_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of setuptools, by which distutils is there on Python 3.12."""
    outer, inner = tmp_path / "outer", tmp_path / "venv"
    outer.mkdir()
    (outer / "shim.pth").write_text("import sys; sys.shimmed = True\n")
    monkeypatch.setattr(venv, "outer_folders", lambda: [str(outer)])
    venv.make(inner)
    code = f"import sys; assert sys.shimmed and {str(outer)!r} in sys.path"
    subprocess.run([str(inner / "bin" / "python"), "-c", code], check=True)


def make_wheel(path: Path) -> None:
    """Packed with xz's method, as what is carried."""
    import zipfile

    info = "inside-1.0.dist-info"
    files = {
        "inside.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: inside\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": f"inside.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
