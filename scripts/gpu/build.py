"""Builds Horovod and the extension in one way, on a machine without network.

Each kind gets an environment and a copy of the source tree of its own: an extension fits one
Horovod. What is built goes into an archive, so that the next bare machine does not build it again.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import lzma
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

from scripts.gpu import carried as gpu_carried
from scripts.gpu import results as gpu_results
from scripts.gpu import venv as gpu_venv
from scripts.horovod.source import extract
from scripts.horovod.wheel import torch_versions
from scripts.places import ROOT

KINDS = ("staged", "nccl", "none")
SDIST = "horovod-0.28.1.tar.gz"
NCCL = "libnccl.so.2"
BUILT = "built.tar.xz"
STATE = "extension.sha256"
NOT_COPIED = (".git", ".venv", "build", "__pycache__", "*.so", "*.egg-info", ".*_cache")


@dataclass(frozen=True)
class Place:
    """Where one kind lives."""

    work: Path
    kind: str

    @property
    def home(self) -> Path:
        return self.work / self.kind

    @property
    def python(self) -> Path:
        return self.home / "venv" / "bin" / "python"

    @property
    def tree(self) -> Path:
        return self.home / "tree"

    @property
    def done(self) -> Path:
        """Of these very sources: others have to be copied and built anew."""
        return self.home / f"built-{tree_state(ROOT)[:16]}"

    @property
    def kept(self) -> Path:
        """Of the extension, beside the cache of Horovod's wheels."""
        return self.work / "cache" / "extension" / self.kind


@dataclass(frozen=True)
class Step:
    """One command of a build."""

    name: str
    command: tuple[str, ...]
    folder: Path


def environment(place: Place, carry: Path, capability: str) -> dict[str, str]:
    """No network, and nothing of the caller's own settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEFT_", "HOROVOD_"))}
    made = {
        "XDG_CACHE_HOME": str(place.work / "cache"),
        "PATH": os.pathsep.join([str(place.python.parent), os.environ.get("PATH", "")]),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(carry / gpu_carried.WHEELS),
        "DEFT_HOROVOD_SDIST": str(carry / SDIST),
    }
    if capability:
        made["HOROVOD_BUILD_CUDA_CC_LIST"] = capability
    return {**kept, **made}


def steps(place: Place, carry: Path, wheels: list[Path]) -> list[Step]:
    """After the environment is there: packages, Horovod, the extension, a look at it."""
    python, tree = str(place.python), place.tree
    made = []
    if wheels:
        install = (python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile")
        made.append(Step("packages", (*install, *map(str, wheels)), place.home))
    script = str(ROOT / "scripts" / "install_horovod.sh")
    options = ("--python", python, "--gpu", place.kind, "--sdist", str(carry / SDIST))
    made.append(Step("horovod", (script, *options), ROOT))
    made.append(Step("extension", (python, "setup.py", "--quiet", "build_ext", "--inplace"), tree))
    made.append(Step("import", (python, "-c", "import deft_horovod.torch"), tree))
    return made


@functools.cache
def tree_state(root: Path) -> str:
    """Of everything that stages run."""
    state = hashlib.sha256()
    for folder in ("csrc", "deft_horovod", "scripts", "tests"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix not in (".so", ".pyc"):
                state.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return state.hexdigest()


def source_state(root: Path) -> str:
    """Of everything that decides what is in the extension, but Horovod."""
    python, (torch, _) = sysconfig.get_config_var("SOABI"), torch_versions()
    state = hashlib.sha256(f"{python} {torch}".encode())
    files = sorted(path for path in (root / "csrc").rglob("*") if path.is_file())
    for path in (*files, root / "setup.py"):
        state.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return state.hexdigest()


def copy_tree(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    ignored = shutil.ignore_patterns(*NOT_COPIED)
    shutil.copytree(ROOT, target, ignore=ignored, symlinks=True)


def restore_extension(place: Place) -> bool:
    """Whether there was one, made of these sources."""
    state = place.kept / STATE
    if not state.is_file() or state.read_text() != source_state(place.tree):
        return False
    for library in place.kept.glob("_C*.so"):
        shutil.copy(library, place.tree / "deft_horovod")
    return True


def keep_extension(place: Place) -> None:
    shutil.rmtree(place.kept, ignore_errors=True)
    place.kept.mkdir(parents=True)
    for library in (place.tree / "deft_horovod").glob("_C*.so"):
        shutil.copy(library, place.kept)
    (place.kept / STATE).write_text(source_state(place.tree))


def restore_built(place: Place, carry: Path) -> None:
    """What an earlier machine has built, unless this one has built something itself."""
    cache = place.work / "cache"
    if (carry / BUILT).is_file() and not cache.is_dir():
        extract(carry / BUILT, cache)


def keep_built(place: Place, out: Path) -> None:
    """Horovod's wheels and the extensions, for the next bare machine."""
    cache = place.work / "cache"
    partial = out / f".{BUILT}"
    with tarfile.open(partial, "w:xz") as archive:
        for pattern in ("deft_horovod/wheels/*/horovod-*", "extension/*/*"):
            for path in sorted(cache.glob(pattern)):
                archive.add(path, path.relative_to(cache))
    partial.replace(out / BUILT)


def unpack_nccl(place: Place, carry: Path) -> None:
    packed, target = carry / f"{NCCL}.xz", place.work / NCCL
    if packed.is_file() and not target.is_file():
        with lzma.open(packed) as source, target.open("wb") as library:
            shutil.copyfileobj(source, library)


def capability() -> str:
    """Of the GPU, as Horovod's build wants it; empty where there is none."""
    code = "import torch; print(*torch.cuda.get_device_capability(), sep='')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def build(place: Place, carry: Path, out: Path, target: str) -> dict[str, float]:
    """Seconds of each step. `target`: the capability of the GPU; empty for none."""
    took_s = {}
    began_s = time.monotonic()
    place.home.mkdir(parents=True, exist_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    restore_built(place, carry)
    unpack_nccl(place, carry)
    gpu_venv.make(place.python.parent.parent)
    done = place.done  # of the sources that are copied now
    copy_tree(place.tree)
    took_s["environment"] = time.monotonic() - began_s
    variables = environment(place, carry, target if place.kind != "none" else "")
    there = restore_extension(place)
    for step in steps(place, carry, sorted((carry / gpu_carried.WHEELS).glob("*.whl"))):
        if step.name == "extension" and there:
            continue
        began_s = time.monotonic()
        print(f"--- {step.name}: {' '.join(step.command)}", flush=True)
        if step.name == "import":  # the package knows all DEFT_ variables, and not that one
            variables.pop("DEFT_HOROVOD_SDIST")
        subprocess.run(step.command, cwd=step.folder, env=variables, check=True)
        took_s[step.name] = time.monotonic() - began_s
        if step.name == "horovod":  # also where the extension then fails
            keep_built(place, out)
    if not there:
        keep_extension(place)
    keep_built(place, out)
    done.touch()
    return {name: round(seconds, 1) for name, seconds in took_s.items()}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, required=True)
    for name in ("work", "carry", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--capability", help="of the GPU that it is for, such as 90; else this one")
    options = parser.parse_args(arguments)
    place = Place(options.work.resolve(), options.kind)
    carry = options.carry.resolve()
    gpu_carried.unpack(carry)
    if not ((carry / SDIST).is_file() or (carry / BUILT).is_file()):
        gpu_results.report(f"{carry / SDIST} is missing: scripts/gpu_check.sh --prepare")
        return 1
    try:
        target = capability() if options.capability is None else options.capability
        took_s = build(place, carry, options.out.resolve(), target)
    except subprocess.CalledProcessError as error:
        gpu_results.report(f"{' '.join(error.cmd)} ended with status {error.returncode}")
        return 1
    words = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took_s.items())
    gpu_results.report(f"built: {words}", seconds=took_s)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
