"""What a GPU check on a machine without network has to bring along, gathered where there is one.

Wheels are those of the versions that are installed and tested here, for the other machine's
Python. They travel packed together, and so do tools that such a machine lacks.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from scripts.gpu import build as gpu_build
from scripts.gpu import carried as gpu_carried
from scripts.gpu import slim_nccl as gpu_slim_nccl
from scripts.gpu import tools as gpu_tools
from scripts.horovod import source as horovod_source
from scripts.places import ROOT

HOROVOD_VERSION = "0.28.1"
PYTHON_VERSION = "3.12"
LIMIT_BYTES = 64 << 20  # of the working tree and what is carried
ARCHITECTURE = 90
# What this project and Horovod need and a machine for PyTorch often does not have.
PACKAGES = (
    "ortools",
    "immutabledict",
    "protobuf",
    "pydantic",
    "pydantic-core",
    "annotated-types",
    "typing-extensions",
    "typing-inspection",
    "cffi",
    "pycparser",
)
# pip matches each exactly. The other machine's C library is at least that of manylinux_2_28.
PLATFORMS = (*(f"manylinux_2_{n}" for n in range(28, 16, -1)), "manylinux2014", "manylinux1")


class PrepareError(RuntimeError):
    """Something could not be fetched, or is too large; the message says what to do."""


def wheel_command(packages: list[str], folder: Path) -> list[str]:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--python-version", PYTHON_VERSION]
    command += ["--implementation", "cp"]
    for platform in PLATFORMS:
        command += ["--platform", f"{platform}_x86_64"]
    return [*command, "--dest", str(folder), *packages]


def download(packages: list[str], folder: Path) -> list[Path]:
    done = subprocess.run(
        wheel_command(packages, folder), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise PrepareError(f"pip could not download {', '.join(packages)}:\n{said}")
    return sorted(folder.glob("*.whl"))


def unpacked(source: Path, target: Path) -> None:
    """The same wheel: its record covers the files in it, not how they are packed. So all wheels can
    be packed together."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for entry in old.infolist():
            copied = zipfile.ZipInfo(entry.filename, entry.date_time)
            copied.external_attr = entry.external_attr
            new.writestr(copied, old.read(entry))


def installed_versions() -> list[str]:
    try:
        return [f"{name}=={importlib.metadata.version(name)}" for name in PACKAGES]
    except importlib.metadata.PackageNotFoundError as error:
        raise PrepareError(f"{error.name} is not installed here; run scripts/setup.sh") from error


def bring_sdist(carry: Path) -> None:
    """Unless Horovod was built ahead."""
    target = carry / gpu_build.SDIST
    if (carry / gpu_build.BUILT).is_file():
        target.unlink(missing_ok=True)
        return
    if target.is_file():
        horovod_source.check_sdist(target, HOROVOD_VERSION)
        return
    with tempfile.TemporaryDirectory() as folder:
        sdist = horovod_source.download_sdist(HOROVOD_VERSION, Path(folder))
        horovod_source.check_sdist(sdist, HOROVOD_VERSION)
        shutil.move(sdist, target)


def bring_wheels(carry: Path) -> None:
    """Anew: two versions of one package stop the whole installation."""
    with tempfile.TemporaryDirectory() as folder:
        wheels = download(installed_versions(), Path(folder))
        together = Path(folder) / gpu_carried.WHEELS
        together.mkdir()
        for wheel in wheels:
            unpacked(wheel, together / wheel.name)
        gpu_carried.pack(together, carry)
    shutil.rmtree(carry / gpu_carried.WHEELS, ignore_errors=True)


def bring_tools(carry: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        together = Path(folder) / gpu_carried.TOOLS
        if gpu_tools.gather(together):
            gpu_carried.pack(together, carry)
    shutil.rmtree(carry / gpu_carried.TOOLS, ignore_errors=True)


def bring_nccl(carry: Path, version: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wheels = download([f"nvidia-nccl-cu13=={version}"], Path(folder))
        with zipfile.ZipFile(wheels[0]) as wheel:
            library = wheel.extract("nvidia/nccl/lib/libnccl.so.2", folder)
        target = carry / f"{gpu_build.NCCL}.xz"
        gpu_slim_nccl.slim(Path(library), target, ARCHITECTURE)


def missing(carry: Path) -> list[str]:
    """What is not there, each with what it means."""
    found = []
    if not any((carry / name).is_file() for name in (gpu_build.SDIST, gpu_build.BUILT)):
        found.append(f"{gpu_build.SDIST}: Horovod cannot be built")
    files = gpu_carried.names_in(carry, gpu_carried.WHEELS)
    there = {name.split("-")[0].lower() for name in files}
    wheels = [name for name in PACKAGES if name.replace("-", "_") not in there]
    if wheels:
        found.append(f"wheels of {', '.join(wheels)}: have to be installed already")
    if not gpu_carried.names_in(carry, gpu_carried.TOOLS):
        found.append("ip and tc: no slow links, unless they are installed")
    if not (carry / f"{gpu_build.NCCL}.xz").is_file():
        found.append(f"{gpu_build.NCCL}.xz: no ranks that share a GPU through NCCL (--nccl 2.30.7)")
    return found


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def tree_bytes() -> int:
    """Of what git knows of."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return sum((ROOT / name).stat().st_size for name in names if name and (ROOT / name).is_file())


def prepare(carry: Path, nccl: str | None) -> str:
    """What there is now, in words."""
    carry.mkdir(parents=True, exist_ok=True)
    bring_sdist(carry)
    bring_wheels(carry)
    bring_tools(carry)
    if nccl:
        bring_nccl(carry, nccl)
    tree, carried = tree_bytes(), size_bytes(carry)
    said = f"{carry}: {carried / 2**20:.1f} MiB, beside {tree / 2**20:.1f} MiB of the tree"
    if tree + carried > LIMIT_BYTES:
        raise PrepareError(
            f"{said}, of {LIMIT_BYTES >> 20} MiB that may travel; leave NCCL out (delete "
            f"{gpu_build.NCCL}.xz), or carry fewer wheels"
        )
    lacking = missing(carry)
    return "\n".join([said, *(f"not there: {line}" for line in lacking)])
