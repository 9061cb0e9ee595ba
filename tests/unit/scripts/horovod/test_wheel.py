"""What decides how Horovod is built, and what stops the build."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.places import ROOT

SCRIPTS = ROOT / "scripts"


def request(wheel: ModuleType, **changes: object) -> Any:
    fields = {"gpu": "none", "mpi": False, "torch_version": "2.13.0", "cuda_home": ""}
    fields |= {"arch_flags": "-mavx", "cuda_architectures": "", **changes}
    return wheel.Request(**fields)


def test_key_tells_apart_whatever_changes_the_library(wheel: ModuleType) -> None:
    changes: list[dict[str, object]] = [
        {},
        {"gpu": "nccl"},
        {"gpu": "staged"},
        {"gpu": "nccl", "cuda_architectures": "90"},
        {"mpi": True},
        {"torch_version": "2.11.0"},
        {"arch_flags": "-mavx -mfma"},
    ]
    requests = [request(wheel, **change) for change in changes]
    assert len({request.key() for request in requests}) == len(changes)
    assert len({request.wheel_folder() for request in requests}) == len(changes)


@pytest.mark.parametrize(
    ("wanted", "cuda", "home", "expected"),
    [
        ("auto", None, "/cuda", "none"),
        ("auto", "13.0", "/cuda", "nccl"),
        ("auto", "13.0", "", "none"),
        ("staged", "13.0", "/cuda", "staged"),
        ("none", "13.0", "/cuda", "none"),
    ],
)
def test_gpu_choice(
    wheel: ModuleType, wanted: str, cuda: str | None, home: str, expected: str
) -> None:
    assert wheel.choose_gpu(wanted, "2.13.0", cuda, home) == expected


def test_gpu_that_cannot_be_had_is_refused(wheel: ModuleType) -> None:
    with pytest.raises(wheel.BuildError, match="needs a torch built with CUDA"):
        wheel.choose_gpu("nccl", "2.13.0+cpu", None, "/cuda")
    with pytest.raises(wheel.BuildError, match="needs nvcc"):
        wheel.choose_gpu("staged", "2.13.0", "13.0", "")


def test_every_missing_tool_is_named_with_its_package(
    wheel: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    lines = "\n".join(wheel.missing_tools(mpi=True))
    for package in ("g++", "make", "cmake", "libopenmpi-dev"):
        assert f"apt-get install -y {package}" in lines


def test_an_edit_that_does_not_apply_stops_the_build(wheel: ModuleType, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "horovod").mkdir(parents=True)
    (tree / "CMakeLists.txt").write_text("set(CMAKE_CXX_STANDARD 20)\n")
    with pytest.raises(wheel.BuildError, match=f"found 0; this is not the source.*{tree}"):
        wheel.copy_edited(tree, tmp_path / "copy", request(wheel))


class TestCheckout:
    def test_other_contents_make_another_key(self, wheel: ModuleType, tmp_path: Path) -> None:
        lists = tmp_path / "horovod" / "torch" / "CMakeLists.txt"
        lists.parent.mkdir(parents=True)
        lists.write_text("one")
        (tmp_path / ".git").mkdir()
        keys = [wheel.make_request("none", False, tmp_path).key()]
        (tmp_path / ".git" / "index").write_text("of git's own")
        keys.append(wheel.make_request("none", False, tmp_path).key())
        lists.write_text("another")
        keys.append(wheel.make_request("none", False, tmp_path).key())
        keys.append(wheel.make_request("none", False).key())
        assert keys[0] == keys[1]
        assert len(set(keys)) == 3

    def test_another_folder_is_refused(self, wheel: ModuleType, tmp_path: Path) -> None:
        with pytest.raises(wheel.BuildError, match="no checkout of Horovod"):
            wheel.make_request("none", False, tmp_path)


def test_stray_switches_do_not_reach_the_build(
    wheel: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOROVOD_WITH_NVTX", "1")
    monkeypatch.setenv("HOROVOD_GPU_OPERATIONS", "MPI")
    environment = wheel.build_environment(request(wheel), tmp_path)
    assert "HOROVOD_WITH_NVTX" not in environment
    assert "HOROVOD_GPU_OPERATIONS" not in environment
    assert environment["HOROVOD_WITHOUT_NVTX"] == "1"
    assert environment["HOROVOD_WITHOUT_MPI"] == "1"


def test_nccl_shim_points_into_the_wheel_of_torch(
    wheel: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = tmp_path / "site" / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    shim = Path(wheel.nccl_shim(tmp_path / "shim"))
    assert (shim / "lib" / "libnccl.so").resolve() == library.resolve()


def test_missing_nccl_names_the_package(
    wheel: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delenv("HOROVOD_NCCL_HOME", raising=False)
    with pytest.raises(wheel.BuildError, match="nvidia-nccl-cu13"):
        wheel.nccl_shim(tmp_path / "shim")


class TestKeptWheel:
    """What is installed: the kept wheel, or a new one. Building takes minutes and is left out."""

    @pytest.fixture(autouse=True)
    def cache(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    @pytest.fixture
    def installed(self, wheel: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
        """The contents of the wheels that pip was given."""
        given: list[bytes] = []

        def build(made: Any, _: Path | None) -> Path:
            return self.keep(wheel, made, b"built anew")

        def pip(*arguments: str) -> None:
            if arguments[-1].endswith(".whl"):
                given.append(Path(arguments[-1]).read_bytes())

        monkeypatch.setattr(wheel, "installed_record", lambda: None)
        monkeypatch.setattr(wheel, "build_wheel", build)
        monkeypatch.setattr(wheel, "pip", pip)
        monkeypatch.setattr(wheel, "foreign_mismatch", lambda _: None)
        return given

    def keep(self, wheel: ModuleType, made: Any, content: bytes) -> Path:
        path: Path = made.wheel_folder() / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        wheel.write_record(path)
        return path

    def test_one_that_is_what_was_built_is_installed(
        self, wheel: ModuleType, installed: list[bytes], capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.keep(wheel, request(wheel), b"built once")
        wheel.install(request(wheel), None, False)
        assert installed == [b"built once"]
        assert capsys.readouterr().err == ""

    def test_one_that_was_changed_since_is_built_anew_and_both_sums_are_named(
        self, wheel: ModuleType, installed: list[bytes], capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = self.keep(wheel, request(wheel), b"built once")
        path.write_bytes(b"built twice")
        wheel.install(request(wheel), None, False)
        assert installed == [b"built anew"]
        said = capsys.readouterr().err
        assert f"{path} is not used" in said
        for content in (b"built once", b"built twice"):
            assert hashlib.sha256(content).hexdigest() in said
        wheel.install(request(wheel), None, False)
        assert capsys.readouterr().err == ""

    def test_one_without_a_record_is_built_anew(
        self, wheel: ModuleType, installed: list[bytes], capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = self.keep(wheel, request(wheel), b"from somewhere")
        path.with_name(f"{path.name}.sha256").unlink()
        wheel.install(request(wheel), None, False)
        assert installed == [b"built anew"]
        assert f"there is no {path.name}.sha256" in capsys.readouterr().err


@pytest.mark.parametrize("script", sorted(path.name for path in SCRIPTS.glob("*.sh")))
def test_shell_scripts_parse(script: str) -> None:
    subprocess.run(["bash", "-n", str(SCRIPTS / script)], check=True, timeout=30)


def test_unknown_option_of_install_horovod_is_refused() -> None:
    command = [str(SCRIPTS / "install_horovod.sh"), "--python", sys.executable, "--gpu", "rocm"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "invalid choice: 'rocm'" in done.stderr
