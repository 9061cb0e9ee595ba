"""Builds and installs Horovod for the Python that runs this file; install_horovod.sh calls it.

An edited copy of its source is built, see edits.py. The wheel is kept in the cache folder, with its
sha256, under a key of everything that decides what is in it.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from scripts.horovod.edits import Edit, EditError, edit, edits_for
from scripts.horovod.options import add_build_options
from scripts.horovod.source import (
    SourceError,
    cache_folder,
    digest,
    ensure_source,
    is_intact,
    write_record,
)

HOROVOD_VERSION = "0.28.1"
RUNTIME_PACKAGES = ("cloudpickle", "psutil", "pyyaml", "packaging", "cffi")
RECORD_FILE = "_deft_build.py"
ARCH_FEATURES = ("f16c", "avx", "fma")
MEMORY_PER_JOB_BYTES = 1_500_000_000
_NOT_COPIED = ".git"  # of a checkout


class BuildError(RuntimeError):
    """Horovod cannot be built or installed; the message says why and what to do."""


@dataclass(frozen=True)
class Request:
    gpu: str  # "nccl", "staged" or "none"
    mpi: bool
    torch_version: str
    cuda_home: str
    arch_flags: str
    cuda_architectures: str
    tree: Path | None = None  # a checkout of Horovod; none: the published source
    tree_sha256: str = ""

    @property
    def edits(self) -> tuple[Edit, ...]:
        return edits_for(self.torch_version, self.gpu != "none")

    def key(self) -> str:
        edits = hashlib.sha256(repr(self.edits).encode()).hexdigest()[:8]
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        words = [HOROVOD_VERSION, f"gpu={self.gpu}", f"mpi={int(self.mpi)}"]
        words += [f"torch={self.torch_version}", python, sysconfig.get_platform()]
        words += [self.arch_flags.replace(" ", "") or "noarch", f"edits={edits}"]
        if self.gpu != "none":
            words.append(f"sm={self.cuda_architectures or 'all'}")
        if self.tree:
            words.append(f"tree={self.tree_sha256[:16]}")
        return ";".join(words)

    def wheel_folder(self) -> Path:
        return cache_folder() / "wheels" / hashlib.sha256(self.key().encode()).hexdigest()[:16]

    def in_words(self) -> str:
        gpu = {"nccl": "CUDA with NCCL", "staged": "CUDA staged through Gloo", "none": "CPU"}
        mpi, tree = ", MPI" if self.mpi else "", ", from a checkout" if self.tree else ""
        return f"{gpu[self.gpu]}, Gloo{mpi}, torch {self.torch_version}{tree}"


def package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def torch_versions() -> tuple[str, str | None]:
    """(version, CUDA version) without the seconds that importing torch takes."""
    folder = package_folder("torch")
    if folder is None:
        raise BuildError(
            f"torch is not installed for {sys.executable}; Horovod is compiled against it. "
            f"Install it first: {sys.executable} -m pip install torch"
        )
    module = runpy.run_path(str(folder / "version.py"))
    return str(module["__version__"]), module.get("cuda")


def find_cuda_home() -> str:
    candidates = [os.environ.get("HOROVOD_CUDA_HOME"), os.environ.get("CUDA_HOME")]
    candidates.append("/usr/local/cuda")
    nvcc = shutil.which("nvcc")
    if nvcc:
        candidates.append(str(Path(nvcc).resolve().parent.parent))
    for candidate in candidates:
        if candidate and (Path(candidate) / "bin" / "nvcc").is_file():
            return candidate
    return ""


def choose_gpu(wanted: str, torch_version: str, cuda: str | None, cuda_home: str) -> str:
    if wanted == "none" or (wanted == "auto" and cuda is None):
        return "none"
    if cuda is None:
        raise BuildError(
            f"--gpu {wanted} needs a torch built with CUDA; torch {torch_version} is built for the "
            "CPU. Install a CUDA torch, or pass --gpu none."
        )
    if cuda_home:
        return "nccl" if wanted == "auto" else wanted
    if wanted == "auto":
        print(
            f"horovod: torch {torch_version} has CUDA but no nvcc was found (PATH, CUDA_HOME, "
            "/usr/local/cuda): building for the CPU.",
            file=sys.stderr,
        )
        return "none"
    raise BuildError(
        f"--gpu {wanted} needs nvcc, looked for in PATH, CUDA_HOME and /usr/local/cuda. Install "
        f"the CUDA {cuda} toolkit and set CUDA_HOME, or pass --gpu none."
    )


def arch_flags() -> str:
    """What Horovod would pick itself; explicit, because it decides where the wheel can run."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return ""
    try:
        cpu = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return ""
    return " ".join(f"-m{feature}" for feature in ARCH_FEATURES if feature in cpu)


def make_request(gpu: str, mpi: bool, tree: Path | None = None) -> Request:
    if tree is not None and not (tree / "horovod" / "torch" / "CMakeLists.txt").is_file():
        raise BuildError(
            f"{tree} is no checkout of Horovod: there is no horovod/torch/CMakeLists.txt."
        )
    torch_version, cuda = torch_versions()
    cuda_home = find_cuda_home()
    return Request(
        gpu=choose_gpu(gpu, torch_version, cuda, cuda_home),
        mpi=mpi,
        torch_version=torch_version,
        cuda_home=cuda_home,
        arch_flags=arch_flags(),
        cuda_architectures=os.environ.get("HOROVOD_BUILD_CUDA_CC_LIST", ""),
        tree=tree,
        tree_sha256=digest(tree, without=_NOT_COPIED) if tree else "",
    )


def missing_tools(mpi: bool) -> list[str]:
    """One line for each tool that the build needs and that is not there."""
    problems = []
    compiler = os.environ.get("CXX", "g++")
    for tool, package in ((compiler, "g++"), ("make", "make"), ("cmake", "cmake")):
        if shutil.which(tool) is None:
            problems.append(f"{tool} is missing: apt-get install -y {package}")
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        problems.append(
            f"Python.h of {sys.executable} is missing: apt-get install -y python{version}-dev"
        )
    if mpi and shutil.which("mpicxx") is None:
        problems.append("mpicxx is missing: apt-get install -y libopenmpi-dev openmpi-bin")
    return problems


def installed_record() -> str | None:
    """The key of the installed Horovod; "" if it was built elsewhere; None if there is none."""
    folder = package_folder("horovod")
    if folder is None:
        return None
    record = folder / RECORD_FILE
    return str(runpy.run_path(str(record))["KEY"]) if record.is_file() else ""


def foreign_mismatch(request: Request) -> str | None:
    """What is wrong with a Horovod that was not built by this script; None if it will do."""
    version = importlib.metadata.version("horovod")
    if version != HOROVOD_VERSION:
        return f"version {version}, expected {HOROVOD_VERSION}"
    probe = (
        "import horovod.torch as h\n"
        "print(int(bool(h.cuda_built())), int(bool(h.nccl_built())), int(bool(h.mpi_built())),"
        " int(bool(h.gloo_built())))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode != 0:
        return f"import horovod.torch fails: {(done.stderr.strip().splitlines() or ['?'])[-1]}"
    cuda, nccl = request.gpu != "none", request.gpu == "nccl"
    expected = f"{int(cuda)} {int(nccl)} {int(request.mpi)} 1"
    observed = done.stdout.strip().splitlines()[-1]
    if observed != expected:
        return f"built (cuda nccl mpi gloo) as {observed}, expected {expected}"
    return None


def copy_edited(source: Path, target: Path, request: Request) -> None:
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(_NOT_COPIED))
    try:
        edit(target, request.edits)
    except EditError as error:
        raise BuildError(f"{error} Its source is {source}.") from None
    record = f'"""How this Horovod was built."""\n\nKEY = {request.key()!r}\n'
    (target / "horovod" / RECORD_FILE).write_text(record, encoding="utf-8")


def nccl_shim(folder: Path) -> str:
    """A prefix as Horovod's CMake expects it, over torch's NCCL wheel (it has no libnccl.so)."""
    candidates = [Path(entry) / "nvidia" / "nccl" for entry in sys.path if entry]
    for candidate in candidates:
        library = candidate / "lib" / "libnccl.so.2"
        if library.is_file():
            (folder / "lib").mkdir(parents=True)
            (folder / "lib" / "libnccl.so").symlink_to(library)
            (folder / "include").symlink_to(candidate / "include")
            return str(folder)
    system = os.environ.get("HOROVOD_NCCL_HOME", "")
    if system:
        return system
    raise BuildError(
        "NCCL is not there: expected nvidia/nccl/lib/libnccl.so.2 beside torch (the package "
        "nvidia-nccl-cu12 or nvidia-nccl-cu13 of torch's CUDA version), or HOROVOD_NCCL_HOME. "
        "Install it, or pass --gpu staged."
    )


def parallel_jobs() -> int:
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), memory_bytes // MEMORY_PER_JOB_BYTES))


def build_environment(request: Request, work: Path) -> dict[str, str]:
    """The caller's environment, without stray HOROVOD_ switches: the key must tell all."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HOROVOD_")}
    environment.update(
        CMAKE_POLICY_VERSION_MINIMUM="3.5",
        HOROVOD_WITH_PYTORCH="1",
        HOROVOD_WITHOUT_TENSORFLOW="1",
        HOROVOD_WITHOUT_MXNET="1",
        HOROVOD_WITH_GLOO="1",
        HOROVOD_WITHOUT_NVTX="1",
        HOROVOD_BUILD_ARCH_FLAGS=request.arch_flags,
        MAKEFLAGS=f"-j{parallel_jobs()}",
    )
    environment["HOROVOD_WITH_MPI" if request.mpi else "HOROVOD_WITHOUT_MPI"] = "1"
    if request.gpu != "none":
        environment.update(CUDA_HOME=request.cuda_home, HOROVOD_CUDA_HOME=request.cuda_home)
        if request.cuda_architectures:
            environment["HOROVOD_BUILD_CUDA_CC_LIST"] = request.cuda_architectures
    if request.gpu == "nccl":
        environment.update(
            HOROVOD_GPU_OPERATIONS="NCCL",
            HOROVOD_NCCL_LINK="SHARED",
            HOROVOD_NCCL_HOME=nccl_shim(work / "nccl"),
        )
    return environment


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)} failed:\n{(done.stderr or done.stdout).strip()}")


def build_wheel(request: Request, sdist: Path | None) -> Path:
    problems = missing_tools(request.mpi)
    if problems:
        raise BuildError("Horovod cannot be built here:\n  " + "\n  ".join(problems))
    source = request.tree or ensure_source(HOROVOD_VERSION, sdist)
    folder = request.wheel_folder()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "build.log"
    print(
        f"horovod: building {HOROVOD_VERSION} ({request.in_words()}); takes 2-5 minutes the first "
        f"time, log: {log}",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="deft-horovod-build-") as temporary:
        work = Path(temporary)
        copy_edited(source, work / "tree", request)
        command = [sys.executable, "-m", "pip", "wheel", ".", "--no-build-isolation", "--no-deps"]
        command += ["--use-pep517", "--no-cache-dir", "--verbose", "-w", str(work / "out")]
        with log.open("w", encoding="utf-8") as output:
            done = subprocess.run(
                command,
                cwd=work / "tree",
                env=build_environment(request, work),
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        wheels = list((work / "out").glob("horovod-*.whl"))
        if done.returncode != 0 or not wheels:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            tail = "\n".join(f"  | {line}" for line in lines[-30:])
            raise BuildError(f"Horovod did not build. Last lines of {log}:\n{tail}")
        kept = folder / wheels[0].name
        shutil.copyfile(wheels[0], partial := kept.with_suffix(f".{os.getpid()}"))
        partial.replace(kept)
        write_record(kept)
    return kept


def kept_wheel(request: Request) -> Path | None:
    """The one that was built for this request, if it is still what was built."""
    return next(filter(is_intact, sorted(request.wheel_folder().glob("horovod-*.whl"))), None)


def ensure_build_backend() -> None:
    if importlib.util.find_spec("setuptools") is None:
        pip("install", "setuptools>=70.1")
    elif int(importlib.metadata.version("setuptools").split(".")[0]) <= 70:
        pip("install", "wheel")


def install(request: Request, sdist: Path | None, force: bool) -> None:
    record = installed_record()
    if not force and record == request.key():
        print(f"horovod: {HOROVOD_VERSION} is installed ({request.in_words()})")
        return
    if not force and record == "":
        mismatch = foreign_mismatch(request)
        if mismatch is None:
            print(f"horovod: {HOROVOD_VERSION} of another builder is installed and fits; kept")
            return
        print(f"horovod: replacing the installed one: {mismatch}")
    started = time.monotonic()
    pip("install", *RUNTIME_PACKAGES)
    wheel = None if force else kept_wheel(request)
    if wheel is None:
        ensure_build_backend()
        wheel = build_wheel(request, sdist)
    pip("install", "--force-reinstall", "--no-deps", str(wheel))
    mismatch = foreign_mismatch(request)
    if mismatch is not None:
        raise BuildError(
            f"The installed Horovod does not work: {mismatch}. Try again with --force."
        )
    print(f"horovod: installed ({request.in_words()}) in {time.monotonic() - started:.0f} s")


def main() -> int:
    parser = argparse.ArgumentParser(prog="install_horovod.sh", description=__doc__)
    add_build_options(parser)
    parser.add_argument("--force", action="store_true", help="build and install again")
    options = parser.parse_args()
    try:
        install(make_request(options.gpu, options.mpi, options.tree), options.sdist, options.force)
    except (BuildError, SourceError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
