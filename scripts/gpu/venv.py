"""A virtual environment on top of the one that runs this, with or without network and ensurepip.

`--system-site-packages` is not enough: of an environment made from another one it shows the base
Python's packages, not that other one's, where torch may be.
"""

from __future__ import annotations

import site
import subprocess
import sys
import sysconfig
from pathlib import Path

# Read at start, after the environment's own packages. Folders that it only named would lack what
# their own files of this kind do: setuptools brings back distutils so, which horovodrun imports.
OUTER = "outer.pth"


def outer_folders() -> list[str]:
    """Where this Python finds packages."""
    folders = [sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]]
    folders += site.getsitepackages()
    return list(dict.fromkeys(folder for folder in folders if Path(folder).is_dir()))


def packages_folder(venv: Path) -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return venv / "lib" / version / "site-packages"


def make(venv: Path) -> None:
    """Its pip is the outer one's, which installs into the environment that runs it."""
    command = [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(venv)]
    subprocess.run(command, check=True)
    outer = packages_folder(venv) / OUTER
    lines = [f"import site; site.addsitedir({folder!r})\n" for folder in outer_folders()]
    outer.write_text("".join(lines), encoding="utf-8")
