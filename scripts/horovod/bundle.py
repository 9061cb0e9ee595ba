"""Puts wheels of Horovod and of this package into a folder, from which other machines install them.

scripts/wheel.sh calls it. The wheels fit the Python that runs this file, the torch that is
installed for it, and processors like the one here.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts.horovod.options import add_build_options
from scripts.horovod.source import SourceError, digest
from scripts.horovod.wheel import (
    BuildError,
    Request,
    build_wheel,
    ensure_build_backend,
    install,
    kept_wheel,
    make_request,
    pip,
)
from scripts.places import ROOT

SUMS_FILE = "SHA256SUMS"
OURS = ("horovod-*.whl", "deft_horovod-*.whl")


def add_horovod(request: Request, sdist: Path | None, folder: Path) -> Path:
    """Installs it, too: this package is compiled against what is installed."""
    install(request, sdist, force=False)
    wheel = kept_wheel(request) or build_wheel(request, sdist)
    return Path(shutil.copy(wheel, folder))


def add_package(folder: Path) -> Path:
    """Compiles it, as far as it has not been compiled for this torch here before."""
    ensure_build_backend()
    if importlib.util.find_spec("ninja") is None:
        pip("install", "ninja")
    with tempfile.TemporaryDirectory(prefix="deft-wheel-") as temporary:
        options = ["--no-build-isolation", "--no-deps", "--no-cache-dir", "-w", temporary]
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", *options]
        done = subprocess.run(
            [*command, str(ROOT)], capture_output=True, text=True, check=False, cwd=temporary
        )
        wheels = list(Path(temporary).glob("deft_horovod-*.whl"))
        if done.returncode != 0 or not wheels:
            raise BuildError(f"The wheel of this package failed:\n{done.stdout}{done.stderr}")
        return Path(shutil.copy(wheels[0], folder))


def add_dependencies(wheels: Sequence[Path], torch_version: str, folder: Path) -> None:
    """Everything that the wheels need, in the versions that pip chooses today."""
    names = [str(wheel) for wheel in wheels]
    pip("download", "--dest", str(folder), *names, f"torch=={torch_version}")


def write_sums(folder: Path) -> None:
    """For sha256sum --check."""
    lines = [f"{digest(path)}  {path.name}\n" for path in sorted(folder.glob("*.whl"))]
    (folder / SUMS_FILE).write_text("".join(lines), encoding="utf-8")


def install_command(folder: Path, dependencies: bool) -> str:
    if dependencies:
        return f"pip install --no-index --find-links {folder} deft_horovod"
    return "pip install " + " ".join(str(folder / pattern) for pattern in OURS)


def make(options: argparse.Namespace) -> None:
    folder: Path = options.to
    folder.mkdir(parents=True, exist_ok=True)
    for stale in (path for pattern in OURS for path in folder.glob(pattern)):
        stale.unlink()
    request = make_request(options.gpu, options.mpi, options.tree)
    wheels = [add_horovod(request, options.sdist, folder)]
    print("wheel: packing deft_horovod", flush=True)
    wheels.append(add_package(folder))
    if options.dependencies:
        print(f"wheel: fetching what they need, torch {request.torch_version} among it", flush=True)
        add_dependencies(wheels, request.torch_version, folder)
    write_sums(folder)
    for wheel in wheels:
        print(f"wheel: {wheel} ({wheel.stat().st_size / 1e6:.1f} MB)")
    print(f"wheel: for Python {sys.version_info.major}.{sys.version_info.minor} with torch", end="")
    print(f" {request.torch_version}: {install_command(folder, options.dependencies)}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="wheel.sh", description=__doc__)
    parser.add_argument(
        "--to", type=Path, default=ROOT / "dist", help="the folder (default: dist in this checkout)"
    )
    parser.add_argument(
        "--dependencies",
        action="store_true",
        help="also wheels of torch and of all else that is needed, for machines without network",
    )
    add_build_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        make(parse(arguments))
    except (BuildError, SourceError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
