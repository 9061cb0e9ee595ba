"""A copy of this tree beside a Horovod with MPI, for the tests under it: build/mpi.

The extension fits one build of Horovod and lies in the package, so a second build needs a second
tree. Its environment has its own Horovod and takes all other packages from the one it is made by.

    .venv/bin/python -m scripts.horovod.mpi_tree
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from scripts.places import ROOT

TREE: Final = ROOT / "build" / "mpi"
_SOURCES: Final = ("csrc", "deft_horovod", "scripts", "tests")
_BUILT: Final = (".so", ".pyc")


def files_of(root: Path) -> list[Path]:
    """What git knows or would take, relative to the root."""
    words = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (root / name).is_file()]


def copy_tree(root: Path, tree: Path, files: Iterable[Path]) -> None:
    """Files keep their times, so that only what has changed is compiled again. In the rooms of
    sources, what has gone goes here too."""
    wanted = {tree / path for path in files}
    for room in _SOURCES:
        for path in (tree / room).rglob("*"):
            if path.is_file() and path not in wanted and path.suffix not in _BUILT:
                path.unlink()
    for target in wanted:
        source = root / target.relative_to(tree)
        known = target.stat() if target.exists() else None
        if known is None or known.st_mtime != source.stat().st_mtime:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def make_environment(folder: Path) -> Path:
    """An environment on top of that of this Python; returns its Python."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    names = {"base": str(folder), "platbase": str(folder)}
    own = Path(sysconfig.get_path("purelib", vars=names))
    (own / "below.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def main() -> int:
    copy_tree(ROOT, TREE, files_of(ROOT))
    python = make_environment(TREE / ".venv")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["PATH"] = f"{python.parent}{os.pathsep}{environment['PATH']}"
    environment["DEFT_FORCE_CPU"] = "1"  # as its Horovod; the tests under MPI use no GPU
    for command in (
        ["scripts/install_horovod.sh", "--python", str(python), "--mpi", "--gpu", "none"],
        [str(python), "setup.py", "--quiet", "build_ext", "--inplace"],
    ):
        done = subprocess.run(
            command, cwd=TREE, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            print(done.stdout[-4000:], done.stderr[-4000:], sep="\n", file=sys.stderr)
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
