"""setup.py: what it says when something is missing, and what it reads from Horovod."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from tests.places import ROOT


def distribution(site: Path, name: str, version: str) -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


class TestSetupMessages:
    """setup.py as a build frontend starts it, in an environment made of text files."""

    def build(self, site: Path, command: str = "dist_info", **environment: str) -> str:
        # Only setuptools of the real environment is visible; torch and Horovod are not.
        runner = (
            "import sys, runpy; import setuptools, setuptools.dist\n"
            f"sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + [{str(site)!r}]\n"
            f"sys.argv = ['setup.py', {command!r}]\n"
            "import importlib.metadata, subprocess\n"
            "real = subprocess.run\n"
            "class Paths: stdout = '[]'\n"
            "subprocess.run = lambda c, **k: Paths if 'json' in str(c) else real(c, **k)\n"
            f"runpy.run_path({str(ROOT / 'setup.py')!r}, run_name='__main__')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", runner],
            cwd=ROOT,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr

    def test_no_torch(self, tmp_path: Path) -> None:
        message = self.build(tmp_path)
        assert "torch is not installed" in message
        assert "pip install 'torch>=2.4'" in message
        assert "--no-build-isolation" in message

    def test_old_torch(self, tmp_path: Path) -> None:
        distribution(tmp_path, "torch", "2.3.1+cpu")
        assert "torch is 2.3.1+cpu; expected 2.4 or newer" in self.build(tmp_path)

    def test_no_horovod(self, tmp_path: Path) -> None:
        """Then it is built without, so a compiler is what it lacks."""
        distribution(tmp_path, "torch", "2.13.0")
        message = self.build(tmp_path, "bdist_wheel", PATH=str(tmp_path), CXX="")
        assert "no C++ compiler" in message
        assert "Horovod is not installed" in message
        assert "for jobs of torchrun only" in message
        assert f"scripts/install_horovod.sh --python {sys.executable}" in message

    def test_other_horovod(self, tmp_path: Path) -> None:
        distribution(tmp_path, "torch", "2.13.0")
        distribution(tmp_path, "horovod", "0.27.0")
        message = self.build(tmp_path)
        assert "Horovod is 0.27.0; expected 0.28.1" in message
        assert "install_horovod.sh" in message

    def test_no_compiler(self, tmp_path: Path) -> None:
        distribution(tmp_path, "torch", "2.13.0")
        distribution(tmp_path, "horovod", "0.28.1")
        message = self.build(tmp_path, "bdist_wheel", PATH=str(tmp_path), CXX="")
        assert "no C++ compiler" in message
        assert "apt-get install -y g++" in message


class TestSetupProbe:
    """The functions of setup.py that look at an installed Horovod."""

    @pytest.fixture
    def module(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
        import setuptools

        monkeypatch.setattr(setuptools, "setup", lambda **_: None)
        monkeypatch.setattr(sys, "argv", ["setup.py", "--version"])
        monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
        spec = importlib.util.spec_from_file_location("deft_setup", ROOT / "setup.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "deft_setup", module)
        spec.loader.exec_module(module)
        return module

    def install(self, site: Path, built_for: str, *, library: bool = True) -> None:
        distribution(site, "horovod", "0.28.1")
        folder = site / "horovod"
        (folder / "torch").mkdir(parents=True)
        (folder / "metadata.json").write_text(json.dumps({"pytorch": built_for}))
        if library:
            suffix = sysconfig.get_config_var("EXT_SUFFIX")
            (folder / "torch" / f"mpi_lib_v2{suffix}").write_text("not a library")

    def test_horovod_of_another_torch(self, module: ModuleType, tmp_path: Path) -> None:
        self.install(tmp_path / "site", "2.11.0")
        with pytest.raises(SystemExit, match=r"built for torch 2\.11\.0, installed is torch 2\.13"):
            module.horovod_library("2.13.0")

    def test_horovod_without_torch(self, module: ModuleType, tmp_path: Path) -> None:
        self.install(tmp_path / "site", "2.13.0", library=False)
        with pytest.raises(SystemExit, match=r"built without torch(.|\n)*--force"):
            module.horovod_library("2.13.0")

    def test_library_that_does_not_load(self, module: ModuleType, tmp_path: Path) -> None:
        self.install(tmp_path / "site", "2.13.0")
        library = module.horovod_library("2.13.0")
        with pytest.raises(SystemExit, match=r"does not load(.|\n)*install_horovod\.sh"):
            module.probe_horovod(library)

    def test_macros_follow_the_build(self, module: ModuleType) -> None:
        build = module.HorovodBuild(cuda=True, nccl=False, mpi=False, gloo=True, nvtx=False)
        macros = dict(build.macros())
        assert macros["HAVE_CUDA"] == macros["HAVE_GPU"] == macros["HAVE_GLOO"] == "1"
        assert not macros.keys() & {"HAVE_NCCL", "HAVE_MPI", "HAVE_NVTX"}
        assert macros["DEFT_HOROVOD_CUDA"] == "1"
        assert macros["DEFT_HOROVOD_NCCL"] == "0"

    def test_standard_is_ours_whatever_torch_compiles_as(
        self, module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        none = {"sources": [], "objects": [], "link": [], "includes": []}
        build = module.HorovodBuild(cuda=False, nccl=False, mpi=False, gloo=True, nvtx=False)
        for name, value in {
            "horovod_library": tmp_path,
            "probe_horovod": build,
            "ensure_source": tmp_path,
            "cuda_parts": none,
        }.items():
            monkeypatch.setattr(module, name, lambda *_, answer=value: answer)
        extension = module.make_extension(tmp_path)
        assert "-std=c++20" in extension.extra_compile_args["cxx"]

    def test_forced_cuda_without_nvcc(
        self, module: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(module.Path, "is_file", lambda _: False)
        monkeypatch.setattr(module.shutil, "which", lambda _: None)
        monkeypatch.setenv("DEFT_FORCE_CUDA", "1")
        with pytest.raises(SystemExit, match=r"DEFT_FORCE_CUDA=1 but there is no nvcc"):
            module.find_nvcc()
        monkeypatch.setenv("DEFT_FORCE_CPU", "1")
        assert module.find_nvcc() is None


def test_packages_bring_their_data(tmp_path: Path) -> None:
    """What is no Python has to be named to get into a wheel."""
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path / "lib")]
    egg_base = ["egg_info", "--egg-base", str(tmp_path)]
    done = subprocess.run(
        [*command[:3], *egg_base, *command[3:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    package = ROOT / "deft_horovod"
    data = {
        path.relative_to(package)
        for suffix in ("*.css", "*.typed", "*.pyi")
        for path in package.rglob(suffix)
    }
    assert Path("report/page.css") in data
    assert [name for name in data if not (tmp_path / "lib" / "deft_horovod" / name).is_file()] == []
