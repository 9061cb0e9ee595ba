#!/usr/bin/env python3
"""Horovod's source tree, fetched once, checked and kept in the cache folder.

The published wheel ships no header, so whoever compiles against Horovod needs the source of exactly
the installed version. Usage: horovod_source.py --version 0.28.1 [--sdist PATH]; prints the folder.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

SHA256_OF_SDIST = {
    "0.28.1": "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0",
}
# Variables by which pip hides the real environment from an isolated build.
ISOLATION_VARIABLES = ("PYTHONPATH", "PYTHONNOUSERSITE")


class SourceError(RuntimeError):
    """The source tree cannot be had; the message says why and what to do."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "deft_horovod"


def source_folder(version: str) -> Path:
    return cache_folder() / f"horovod-{version}" / "src"


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
    observed = hashlib.sha256(sdist.read_bytes()).hexdigest()
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


def unpack(sdist: Path, version: str, target: Path) -> None:
    """Unpacks beside `target` and renames: another process sees all of the tree or nothing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="unpack-") as temporary:
        with tarfile.open(sdist) as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(temporary, filter="data")
            else:
                archive.extractall(temporary)
        tree = Path(temporary) / f"horovod-{version}"
        try:
            tree.rename(target)
        except OSError:
            if not target.is_dir():
                raise


def ensure_source(version: str, sdist: Path | None = None) -> Path:
    """The folder of the unpacked tree; does nothing when it is there already."""
    expected_sha256(version)
    target = source_folder(version)
    sdist_from_environment = os.environ.get("DEFT_HOROVOD_SDIST")
    if sdist is None and sdist_from_environment:
        sdist = Path(sdist_from_environment)
    if sdist is not None:
        check_sdist(sdist, version)
    if target.is_dir():
        return target
    if sdist is not None:
        unpack(sdist, version, target)
        return target
    folder = Path(tempfile.mkdtemp(prefix="deft-horovod-sdist-"))
    try:
        downloaded = download_sdist(version, folder)
        check_sdist(downloaded, version)
        unpack(downloaded, version, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target


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
