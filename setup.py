"""Builds deft_horovod._C against the torch that is installed, and the Horovod if there is one.

Everything declarative is in pyproject.toml. The extension must be compiled with the macros that the
installed Horovod was compiled with (its class layouts depend on them), so they are read from it.
Environment: DEFT_FORCE_CPU=1 / DEFT_FORCE_CUDA=1 (without / only with nvcc), DEFT_WERROR=1
(warnings are errors), DEFT_HOROVOD_SDIST=PATH (Horovod's sdist, for machines without network),
MAX_JOBS.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, NoReturn

from setuptools import setup

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from scripts.extension.together import together  # noqa: E402
from scripts.horovod.source import ISOLATION_VARIABLES, SourceError, ensure_source  # noqa: E402

HOROVOD_VERSION = "0.28.1"
TORCH_MINIMUM = (2, 4)
BUILD_COMMANDS = {"bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install"}
CHECK_COMMANDS = BUILD_COMMANDS | {"dist_info"}
NVTX_SYMBOL = "_ZN7horovod6common11NvtxOpRange15nvtx_ops_handleE"
MEMORY_PER_JOB_BYTES = 2_000_000_000
NVCC_FLAGS = (
    "-O3",
    "-std=c++17",
    "-Xcompiler=-fPIC,-fvisibility=hidden",
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=sm_90",
    "-gencode=arch=compute_90,code=compute_90",
)


@dataclass(frozen=True)
class HorovodBuild:
    """What decides the layout of Horovod's classes."""

    cuda: bool
    nccl: bool
    mpi: bool
    gloo: bool
    nvtx: bool

    def macros(self) -> list[tuple[str, str | None]]:
        flags = {"HAVE_CUDA": self.cuda, "HAVE_GPU": self.cuda, "HAVE_NCCL": self.nccl}
        flags |= {"HAVE_MPI": self.mpi, "HAVE_GLOO": self.gloo, "HAVE_NVTX": self.nvtx}
        macros: list[tuple[str, str | None]] = [(name, "1") for name, on in flags.items() if on]
        record = {"CUDA": self.cuda, "NCCL": self.nccl, "MPI": self.mpi, "GLOO": self.gloo}
        return macros + [(f"DEFT_HOROVOD_{name}", str(int(on))) for name, on in record.items()]


def stop(observed: str, remedy: str) -> NoReturn:
    raise SystemExit(f"\nerror: deft_horovod cannot be built: {observed}\n       {remedy}\n")


def append_real_environment() -> None:
    """An isolated build hides the environment it installs into; torch and Horovod are there."""
    environment = {k: v for k, v in os.environ.items() if k not in ISOLATION_VARIABLES}
    command = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.path))"]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    for entry in json.loads(output.stdout):
        if entry and entry not in sys.path:
            sys.path.append(entry)


def installed_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def install_horovod_command(*options: str) -> str:
    words = ["scripts/install_horovod.sh", "--python", sys.executable, *options]
    return f"Run (in this project's source tree): {shlex.join(words)}"


def check_environment() -> None:
    """Stops with the command that mends it where something is missing; imports nothing."""
    torch_version = installed_version("torch")
    isolation = "If it is there, the build environment hides it: pip install --no-build-isolation ."
    if torch_version is None:
        stop(
            f"torch is not installed for {sys.executable}.",
            f"Run: pip install 'torch>=2.4'. {isolation}",
        )
    if tuple(int(part) for part in torch_version.split(".")[:2]) < TORCH_MINIMUM:
        stop(f"torch is {torch_version}; expected 2.4 or newer.", "Run: pip install 'torch>=2.4'")
    horovod_version = installed_version("horovod")
    if horovod_version is None:
        print(
            f"deft_horovod: Horovod is not installed for {sys.executable}, so this build is for "
            f"jobs of torchrun only (deft_horovod.distributed). For Horovod's, install that first. "
            f"{install_horovod_command()}",
            file=sys.stderr,
            flush=True,
        )
    elif horovod_version.split("+")[0] != HOROVOD_VERSION:
        stop(
            f"Horovod is {horovod_version}; expected {HOROVOD_VERSION}.",
            install_horovod_command("--force"),
        )


def check_compiler() -> None:
    compiler = os.environ.get("CXX") or ("c++" if shutil.which("c++") else "g++")
    if shutil.which(shlex.split(compiler)[0]) is None:
        stop(
            f"there is no C++ compiler (looked for {compiler}).",
            "Run: apt-get install -y g++  (or set CXX)",
        )
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        stop("Python.h is missing.", f"Run: apt-get install -y python{version}-dev")


def horovod_library(torch_version: str) -> Path:
    """Horovod's library for torch, if it was built for the torch that is installed."""
    origin = importlib.metadata.distribution("horovod").locate_file("horovod")
    folder = Path(str(origin))
    libraries = sorted((folder / "torch").glob("mpi_lib_v2*.so"))
    if not libraries:
        stop(f"Horovod in {folder} was built without torch.", install_horovod_command("--force"))
    built_for = json.loads((folder / "metadata.json").read_text(encoding="utf-8")).get("pytorch")
    if built_for != torch_version:
        stop(
            f"Horovod was built for torch {built_for}, installed is torch {torch_version}.",
            install_horovod_command("--force"),
        )
    return libraries[0]


def probe_horovod(library: Path) -> HorovodBuild:
    """Asks the library itself; torch must have been imported, it is linked against it."""
    try:
        loaded = ctypes.CDLL(str(library))
    except OSError as error:
        stop(f"Horovod's library does not load: {error}", install_horovod_command("--force"))
    return HorovodBuild(
        cuda=bool(loaded.horovod_cuda_built()),
        nccl=bool(loaded.horovod_nccl_built()),
        mpi=bool(loaded.horovod_mpi_built()),
        gloo=bool(loaded.horovod_gloo_built()),
        nvtx=hasattr(loaded, NVTX_SYMBOL),
    )


def find_nvcc() -> Path | None:
    if os.environ.get("DEFT_FORCE_CPU") == "1":
        return None
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("HOROVOD_CUDA_HOME"), "/usr/local/cuda"]
    for home in homes:
        if home and (Path(home) / "bin" / "nvcc").is_file():
            return Path(home) / "bin" / "nvcc"
    found = shutil.which("nvcc")
    if found is None and os.environ.get("DEFT_FORCE_CUDA") == "1":
        stop(
            "DEFT_FORCE_CUDA=1 but there is no nvcc in CUDA_HOME, /usr/local/cuda or PATH.",
            "Install the CUDA toolkit and set CUDA_HOME, or unset DEFT_FORCE_CUDA.",
        )
    return Path(found) if found else None


def find_in_toolkit(nvcc: Path, names: tuple[str, ...], what: str) -> Path:
    toolkit = nvcc.resolve().parent.parent
    for name in names:
        if (toolkit / name).exists():
            return toolkit / name
    stop(
        f"{what} is not in the CUDA toolkit {toolkit} (looked for {', '.join(names)}).",
        "Install the whole toolkit and set CUDA_HOME to it, or set DEFT_FORCE_CPU=1.",
    )


def compile_cuda(nvcc: Path, folder: Path) -> list[str]:
    """Objects of csrc/cuda; compiled again only when a file in it or the flags changed."""
    below = ROOT / "csrc" / "cuda"
    inputs = sorted(below.rglob("*"))
    shared = (ROOT / "csrc" / "wire").glob("*.h")
    newest = max(path.stat().st_mtime_ns for path in (*inputs, *shared))
    strict = ["-Werror=all-warnings"] if os.environ.get("DEFT_WERROR") == "1" else []
    objects, stale = [], {}
    for source in (path for path in inputs if path.suffix == ".cu"):
        target = folder / source.relative_to(below).with_suffix(".o")
        stamp = target.with_suffix(".command")
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [str(nvcc), *NVCC_FLAGS, *strict, f"-I{ROOT / 'csrc'}", "-c", str(source), "-o"]
        command.append(str(target))
        fresh = target.is_file() and stamp.is_file() and target.stat().st_mtime_ns > newest
        if not (fresh and stamp.read_text(encoding="utf-8") == shlex.join(command)):
            stale[stamp] = command
        objects.append(str(target))
    with ThreadPool(int(os.environ.get("MAX_JOBS", "1"))) as pool:
        failed = [
            command for command in pool.starmap(run_nvcc, stale.items(), chunksize=1) if command
        ]
    if failed:
        stop(f"nvcc failed: {failed[0]}", "See above; DEFT_FORCE_CPU=1 builds without it.")
    return objects


def run_nvcc(stamp: Path, command: list[str]) -> str:
    """The command if it failed."""
    text = shlex.join(command)
    print(text, flush=True)
    if subprocess.run(command, check=False).returncode != 0:
        return text
    stamp.write_text(text, encoding="utf-8")
    return ""


def cuda_parts(build: HorovodBuild | None, folder: Path) -> dict[str, list[str]]:
    """Sources, objects, link arguments and include folders of the device layer."""
    nvcc = find_nvcc()
    includes: list[str] = []
    sources = sorted((ROOT / "csrc" / "cuda").rglob("*.cpp"))
    host = relative([path for path in sources if not path.stem.endswith("_stub")])
    if build is not None and build.cuda:
        if nvcc is None:
            stop(
                "the installed Horovod has CUDA, and its headers need the CUDA toolkit's.",
                "Install the toolkit and set CUDA_HOME (and unset DEFT_FORCE_CPU).",
            )
        headers = ("include/cuda_runtime.h", "targets/x86_64-linux/include/cuda_runtime.h")
        includes.append(str(find_in_toolkit(nvcc, headers, "cuda_runtime.h").parent))
    if nvcc is None:
        stubs = sorted((ROOT / "csrc" / "cuda").rglob("*_stub.cpp"))
        return {"sources": host + relative(stubs), "objects": [], "link": [], "includes": includes}
    names = ("lib64/libcudart_static.a", "targets/x86_64-linux/lib/libcudart_static.a")
    runtime = find_in_toolkit(nvcc, names, "libcudart_static.a")
    # The static runtime's symbols stay inside: torch brings a shared one of the same names.
    link = [str(runtime), "-Wl,--exclude-libs,libcudart_static.a", "-lrt", "-ldl", "-lpthread"]
    objects = compile_cuda(nvcc, folder)
    return {"sources": host, "objects": objects, "link": link, "includes": includes}


def mpi_includes(build: HorovodBuild) -> list[str]:
    if not build.mpi:
        return []
    if shutil.which("mpicxx") is None:
        stop(
            "the installed Horovod has MPI, and its headers need mpi.h.",
            "Run: apt-get install -y libopenmpi-dev openmpi-bin",
        )
    for arguments in (["--showme:compile"], ["-show"]):  # Open MPI, MPICH
        done = subprocess.run(["mpicxx", *arguments], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return [word[2:] for word in shlex.split(done.stdout) if word.startswith("-I")]
    return []


def relative(paths: list[Path]) -> list[str]:
    return [os.path.relpath(path, ROOT) for path in paths]


def listed_sources(folder: str) -> list[Path]:
    """What CMakeLists.txt compiles there, too."""
    below = ROOT / "csrc" / folder
    lines = [
        line.strip() for line in (below / "sources.txt").read_text(encoding="utf-8").splitlines()
    ]
    return [below / line for line in lines if line and line[0] != "#"]


def host_sources(build_temp: Path, *, with_horovod: bool) -> list[str]:
    other = "horovod_stub.cpp" if with_horovod else "horovod_py.cpp"

    def found(folder: str) -> list[Path]:
        sources = sorted((ROOT / "csrc" / folder).rglob("*.cpp"))
        return [path for path in sources if path.name != other]

    rooms = [together(found(name), build_temp / f"{name}.cpp") for name in ("bindings", "torch")]
    alone = [*listed_sources("core"), *listed_sources("wire")]
    return relative([*rooms, *(found("horovod") if with_horovod else ()), *alone])


def horovod_headers() -> Path:
    try:
        return Path(ensure_source(HOROVOD_VERSION))
    except SourceError as error:
        stop(f"Horovod's headers are needed.\n{error}", "")


def installed_horovod(torch_version: str) -> HorovodBuild | None:
    if installed_version("horovod") is None:
        return None
    return probe_horovod(horovod_library(torch_version))


def make_extension(build_temp: Path) -> Any:
    import torch
    from torch.utils.cpp_extension import CppExtension, include_paths

    torch_version = str(torch.__version__)
    build = installed_horovod(torch_version)
    cuda = cuda_parts(build, build_temp / "cuda")
    system = [*include_paths(), sysconfig.get_paths()["include"], *cuda["includes"]]
    system += [str(horovod_headers()), *mpi_includes(build)] if build is not None else []
    # Horovod's interface returns const scalars by value, and whoever overrides it must do so too.
    flags = ["-O3", "-g0", "-Wall", "-Wextra", "-Wno-ignored-qualifiers", "-fvisibility=hidden"]
    flags.append("-std=c++20")  # torch 2.11 would compile it as C++17
    flags.append("-ffp-contract=off")  # csrc/wire: ranks on other processors must get the same bits
    if os.environ.get("DEFT_WERROR") == "1":
        # GCC 12 is wrong about sums of strings, and clang does not know that warning.
        flags += ["-Werror", "-Wno-error=restrict", "-Wno-unknown-warning-option"]
    # -isystem of a folder overrides torch's -I of it: no warnings from headers of others.
    flags += [word for folder in system for word in ("-isystem", folder)]
    versions = [("DEFT_HOROVOD_VERSION", HOROVOD_VERSION), ("DEFT_TORCH_VERSION", torch_version)]
    macros = build.macros() if build is not None else []
    return CppExtension(
        "deft_horovod._C",
        host_sources(build_temp, with_horovod=build is not None) + cuda["sources"],
        include_dirs=[str(ROOT / "csrc")],
        define_macros=macros + [(name, f'"{value}"') for name, value in versions],
        extra_compile_args={"cxx": flags},
        extra_objects=cuda["objects"],
        extra_link_args=["-Wl,--strip-debug", *cuda["link"]],
    )


def extension_arguments() -> dict[str, Any]:
    """For setup(): nothing unless something is being built, so that metadata needs no torch."""
    commands = set(sys.argv[1:])
    if not commands & CHECK_COMMANDS:
        return {}
    append_real_environment()
    check_environment()
    if not commands & BUILD_COMMANDS:
        return {}
    check_compiler()
    for stale in (ROOT / "build").glob("lib.*"):  # else modules deleted since get into the wheel
        shutil.rmtree(stale)
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    jobs = max(1, min(len(os.sched_getaffinity(0)), memory_bytes // MEMORY_PER_JOB_BYTES))
    os.environ.setdefault("MAX_JOBS", str(jobs))
    from torch.utils import cpp_extension

    tag = f"{sys.implementation.cache_tag}-torch{installed_version('torch')}"
    build_temp = ROOT / "build" / "extension" / tag

    class Build(cpp_extension.BuildExtension):  # type: ignore[misc]
        """Keeps its objects in one place, also for editable installs, so that ninja can skip."""

        def finalize_options(self) -> None:
            super().finalize_options()
            self.build_temp = str(build_temp)

        def build_extensions(self) -> None:
            try:
                super().build_extensions()
            except RuntimeError as error:
                stop(f"{error}.", "The compiler's own messages stand above.")

    return {"ext_modules": [make_extension(build_temp)], "cmdclass": {"build_ext": Build}}


setup(**extension_arguments())
