"""Which versions of Python, torch and Horovod it builds with and trains with. Each combination gets
a copy of this tree and an environment of its own, in build/versions.

    .venv/bin/python -m scripts.horovod.versions --python 3.12 --torch 2.13.0
    .venv/bin/python -m scripts.horovod.versions --python 3.11 --torch 2.13.0 \\
        --tree ~/horovod --called "main, 2626dc8"

It keeps what it finds in docs/studies/versions/versions.json, and makes the page of that.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from scripts.checks.results_summary import summarise, testcases
from scripts.horovod.mpi_tree import copy_tree, files_of
from scripts.places import ROOT

TREES: Final = ROOT / "build" / "versions"
KEPT: Final = ROOT / "docs" / "studies" / "versions" / "versions.json"
PAGE: Final = ROOT / "docs" / "studies" / "versions" / "README.md"
# Every optimizer and policy beside stock Horovod and DDP bit for bit, links, and what torch changes
# most often: hooks, the order of gradients, torch.compile.
TESTS: Final = (
    "tests/unit/extension",
    "tests/parallel/torch",
    "tests/parallel/runtime/test_parity.py",
    "tests/parallel/runtime/test_links.py",
    "tests/parallel/runtime/test_formats.py",
    "tests/parallel/patterns/test_hook_order.py",
    "tests/parallel/patterns/test_special.py",
    "tests/parallel/distributed/test_beside_ddp.py",
)
RELEASE: Final = "0.28.1"  # of Horovod
_TOOLS: Final = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist", "setuptools", "wheel")
_SAID_LINES: Final = 20
_HEAD: Final = """\
# Tested versions

Made by `python -m scripts.horovod.versions` from [versions.json](versions.json). For each row
Horovod and the extension are built anew, without CUDA, and the tests that depend most on versions
are run: {tests}.

| Python | torch | Horovod | built | tests |
| --- | --- | --- | --- | --- |
"""


class StepError(RuntimeError):
    """A step of a combination failed."""


@dataclass(frozen=True)
class Tried:
    """What became of a combination. `problem`: why there are no tests; empty: there are."""

    python: str
    torch: str
    horovod: str = RELEASE
    problem: str = ""
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def row(self) -> str:
        tests = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        built, ran = ("no", self.problem) if self.problem else ("yes", tests)
        return f"| {self.python} | {self.torch} | {self.horovod} | {built} | {ran} |"


def interpreter(version: str) -> str:
    """Of that version, from pyenv (whose entry in PATH may be of another) or from PATH."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    found = str(kept[-1]) if kept else shutil.which(f"python{version}")
    if found is None:
        raise StepError(f"there is no python{version}")
    return found


def run(words: Sequence[str], tree: Path, **more: str) -> None:
    """A step; raises with the last lines of what it said."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    path = f"{tree / '.venv' / 'bin'}{os.pathsep}{environment['PATH']}"
    print(f"versions: {' '.join(words[:6])}", flush=True)
    done = subprocess.run(
        words,
        cwd=tree,
        env={**environment, "PATH": path, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = "\n".join(f"{done.stdout}\n{done.stderr}".strip().splitlines()[-_SAID_LINES:])
        raise StepError(f"{Path(words[0]).name} {' '.join(map(_name, words[1:4]))} failed:\n{said}")


def _name(word: str) -> str:
    """Without folders of this machine."""
    return Path(word).name if word.startswith("/") else word


def build(tree: Path, base: str, torch: str, horovod: Path | None) -> Path:
    """Everything but the tests; returns the Python of the environment. `horovod`: a checkout of it;
    none: its release."""
    copy_tree(ROOT, tree, files_of(ROOT))
    python = tree / ".venv" / "bin" / "python"
    if not python.exists():
        run([base, "-m", "venv", str(tree / ".venv")], tree)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, f"torch=={torch}"], tree)
    source = ["--tree", str(horovod)] if horovod else []
    run(["scripts/install_horovod.sh", "--python", str(python), "--gpu", "none", *source], tree)
    run([*pip, *_TOOLS], tree)
    run([*pip, "--no-build-isolation", "--editable", "."], tree, DEFT_FORCE_CPU="1")
    return python


def test(python: Path, tree: Path) -> tuple[int, int, int]:
    """Passed, failed, skipped. One process of pytest for each folder, as these cannot share one."""
    results = tree / "build" / "test-results"
    shutil.rmtree(results, ignore_errors=True)
    unit, *ranks = TESTS
    broken = 0
    for name, files in (("unit", [unit]), ("ranks", ranks)):
        report = results / f"{name}.xml"
        options = ["-n", "3", "--dist", "loadfile", "-m", "not alone", f"--junitxml={report}"]
        try:
            run([str(python), "-m", "pytest", *files, *options], tree)
        except StepError as error:
            print(error, file=sys.stderr)
            broken += not report.is_file() or next(testcases(report), None) is None
    found = summarise(results, broken)
    return found.passed, found.failed, found.skipped


def tried(asked: Tried, horovod: Path | None) -> Tried:
    """These versions, with what became of them. `horovod`: as for :func:`build`."""
    tree = TREES / f"python{asked.python}-torch{asked.torch}"
    try:
        python = build(tree, interpreter(asked.python), asked.torch, horovod)
        passed, failed, skipped = test(python, tree)
    except StepError as error:
        print(error, file=sys.stderr)
        return replace(asked, problem=str(error).splitlines()[0].rstrip(":"))
    return replace(asked, passed=passed, failed=failed, skipped=skipped)


def kept() -> list[Tried]:
    """What was found so far."""
    rows = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else []
    return [Tried(**row) for row in rows]


def keep(one: Tried) -> None:
    """In the place of what was found of the same versions before."""
    names = ("python", "torch", "horovod")
    others = [row for row in kept() if any(getattr(row, n) != getattr(one, n) for n in names)]
    rows = sorted((*others, one), key=lambda row: [_numbers(getattr(row, n)) for n in names])
    text = ",\n".join(json.dumps(asdict(row)) for row in rows)
    KEPT.write_text(f"[\n{text}\n]\n", encoding="utf-8")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def page() -> str:
    """As Markdown."""
    tests = ", ".join(f"`{path}`" for path in TESTS)
    return _HEAD.format(tests=tests) + "\n".join(row.row for row in kept()) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", action="append", default=[], help="such as 3.12")
    parser.add_argument("--torch", action="append", default=[], help="such as 2.13.0")
    parser.add_argument("--tree", type=Path, help="a checkout of Horovod instead of its release")
    parser.add_argument("--called", help="what the row calls that checkout")
    options = parser.parse_args(arguments)
    if bool(options.tree) != bool(options.called):
        parser.error("--tree and --called go together")
    horovod = options.called or RELEASE
    for python in options.python:
        for torch in options.torch:
            keep(tried(Tried(python, torch, horovod), options.tree))
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
