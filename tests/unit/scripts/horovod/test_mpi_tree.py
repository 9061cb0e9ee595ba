"""The tree follows the sources, and its environment has its own packages first."""

import os
import subprocess
from pathlib import Path

from scripts.horovod.mpi_tree import copy_tree, files_of, make_environment


def write(root, name, text="text"):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return Path(name)


def test_what_changes_is_copied_and_what_goes_goes(tmp_path):
    root, tree = tmp_path / "root", tmp_path / "tree"
    files = [write(root, "csrc/a.cpp"), write(root, "tests/b.py"), write(root, "setup.py")]
    copy_tree(root, tree, files)
    assert all((tree / file).read_text() == "text" for file in files)
    assert (tree / "setup.py").stat().st_mtime == (root / "setup.py").stat().st_mtime
    untouched = (tree / "csrc/a.cpp").stat().st_ino

    os.utime(root / write(root, "setup.py", "other"), (1, 1))
    write(tree, "deft_horovod/_C.so")
    write(tree, "build/kept")
    copy_tree(root, tree, [files[0], files[2]])
    assert (tree / "setup.py").read_text() == "other"
    assert (tree / "csrc/a.cpp").stat().st_ino == untouched
    assert not (tree / "tests/b.py").exists()
    assert (tree / "deft_horovod/_C.so").exists()
    assert (tree / "build/kept").exists()


def test_ignored_files_stay_behind(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    write(tmp_path, ".gitignore", "build/\n")
    write(tmp_path, "build/made")
    new = write(tmp_path, "new.py")
    assert set(files_of(tmp_path)) == {new, Path(".gitignore")}


def test_an_environment_has_its_own_packages_and_those_below(tmp_path):
    python = make_environment(tmp_path / "venv")
    own = tmp_path / "venv" / "lib"
    (next(own.glob("python*")) / "site-packages" / "click.py").write_text("here = True\n")
    said = "import click, numpy; print(click.here, numpy.__name__)"
    done = subprocess.run([python, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "True numpy\n"
