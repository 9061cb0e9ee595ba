"""Horovod's source tree, fetched once, kept in the cache folder, and checked before each use.

The published wheel ships no header, so compiling against Horovod takes the source of exactly the
installed version. Usage: horovod_source.py --version 0.28.1 [--sdist PATH]; prints the folder.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

SHA256_OF_SDIST = {
    "0.28.1": "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0",
}
# Variables by which pip hides the real environment from an isolated build.
ISOLATION_VARIABLES = ("PYTHONPATH", "PYTHONNOUSERSITE")


class SourceError(RuntimeError):
    """There is no source tree; the message says why and what to do."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "deft_horovod"


def source_folder(version: str) -> Path:
    return cache_folder() / f"horovod-{version}" / "src"


def digest(path: Path, without: str = "") -> str:
    """sha256 of a file; of a folder over the names and the contents of all that is in it, but for
    what has this name."""
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    whole = hashlib.sha256()
    for entry in sorted(path.rglob("*")):
        if without in entry.relative_to(path).parts:
            continue
        if entry.is_symlink():
            kind, content = "link", os.fsencode(entry.readlink())
        elif entry.is_dir():
            continue
        else:
            kind, content = "file", entry.read_bytes()
        name = os.fsencode(entry.relative_to(path))
        whole.update(f"{kind} {len(name)} {len(content)} ".encode() + name + content)
    return whole.hexdigest()


def record_of(kept: Path) -> Path:
    return kept.with_name(f"{kept.name}.sha256")


def write_record(kept: Path) -> None:
    """So that a later use can tell whether the tree is still what was made now."""
    record_of(kept).write_text(f"{digest(kept)}\n", encoding="ascii")


def is_intact(kept: Path) -> bool:
    """Whether something in the cache is what was made once; says on stderr what is wrong."""
    record = record_of(kept)
    expected = record.read_text(encoding="ascii").strip() if record.is_file() else None
    observed = digest(kept)
    if observed == expected:
        return True
    wanted = f"expected {expected}" if expected else f"there is no {record.name} to compare with"
    print(
        f"horovod: {kept} is not used: its sha256 is {observed}, {wanted}. It is made anew.",
        file=sys.stderr,
    )
    return False


def expected_sha256(version: str) -> str:
    try:
        return SHA256_OF_SDIST[version]
    except KeyError:
        known = ", ".join(sorted(SHA256_OF_SDIST))
        raise SourceError(
            f"Horovod {version} is not supported; expected one of: {known}."
        ) from None


def check_sdist(sdist: Path, version: str) -> None:
    if not sdist.is_file():
        raise SourceError(f"There is no file {sdist}; expected the sdist horovod-{version}.tar.gz.")
    observed = digest(sdist)
    expected = expected_sha256(version)
    if observed != expected:
        raise SourceError(
            f"{sdist} is not the published sdist of Horovod {version}: sha256 is {observed}, "
            f"expected {expected}. Delete it and fetch it again."
        )


def download_sdist(version: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-binary", ":all:", "--no-deps", "--dest", str(folder), f"horovod=={version}"]
    if importlib.util.find_spec("setuptools"):
        command.insert(5, "--no-build-isolation")
    environment = {k: v for k, v in os.environ.items() if k not in ISOLATION_VARIABLES}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    sdist = folder / f"horovod-{version}.tar.gz"
    if done.returncode != 0 or not sdist.is_file():
        last_lines = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise SourceError(
            f"pip could not download the sdist of Horovod {version}:\n{last_lines}\n"
            f"Without network, pass the file: --sdist PATH/horovod-{version}.tar.gz "
            "(or DEFT_HOROVOD_SDIST=PATH)."
        )
    return sdist


def extract(archive: Path, folder: Path) -> None:
    """All that the archive has, also with a Python before 3.11.4, such as that of Debian 12."""
    with tarfile.open(archive) as opened:
        if hasattr(tarfile, "data_filter"):
            opened.extractall(folder, filter="data")
        else:
            opened.extractall(folder)


def unpack(sdist: Path, version: str, target: Path) -> None:
    """Unpacks beside `target` and renames: a tree is whole, and has its record once it was."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="unpack-") as temporary:
        extract(sdist, Path(temporary))
        if target.exists():
            record_of(target).unlink(missing_ok=True)
            target.rename(Path(temporary) / "replaced")
        (Path(temporary) / f"horovod-{version}").rename(target)
    write_record(target)


@contextlib.contextmanager
def alone_with(target: Path) -> Iterator[None]:
    """One process at a time checks a tree and replaces it."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / f"{target.parent.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure_source(version: str, sdist: Path | None = None) -> Path:
    """The folder of the unpacked tree; only looks it through when it is there already."""
    expected_sha256(version)
    target = source_folder(version)
    sdist_from_environment = os.environ.get("DEFT_HOROVOD_SDIST")
    if sdist is None and sdist_from_environment:
        sdist = Path(sdist_from_environment)
    if sdist is not None:
        check_sdist(sdist, version)
    with alone_with(target):
        if not (target.is_dir() and is_intact(target)):
            make_source(version, sdist, target)
    return target


def make_source(version: str, sdist: Path | None, target: Path) -> None:
    if sdist is not None:
        unpack(sdist, version, target)
        return
    folder = Path(tempfile.mkdtemp(prefix="deft-horovod-sdist-"))
    try:
        downloaded = download_sdist(version, folder)
        check_sdist(downloaded, version)
        unpack(downloaded, version, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default="0.28.1")
    parser.add_argument("--sdist", type=Path, help="the sdist as a file, for use without network")
    options = parser.parse_args()
    try:
        print(ensure_source(options.version, options.sdist))
    except SourceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
