"""The folder of wheels: other environments install from it, and it tells what is in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.horovod import bundle


def run(*words: str, cwd: Path) -> str:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_both_wheels_install_without_network_and_without_this_checkout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFT_WERROR", "1")  # as it was compiled here
    folder, target = tmp_path / "wheels", tmp_path / "site"
    folder.mkdir()
    (folder / "deft_horovod-0.0.0-py3-none-any.whl").touch()  # of an earlier version
    assert bundle.main(["--to", str(folder)]) == 0
    printed = capsys.readouterr().out
    wheels = sorted(folder.glob("*.whl"))
    assert [wheel.name.split("-")[0] for wheel in wheels] == ["deft_horovod", "horovod"]
    assert all(str(wheel) in printed for wheel in wheels)
    run("sha256sum", "--check", bundle.SUMS_FILE, cwd=folder)

    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    run(*pip, "--target", str(target), *map(str, wheels), cwd=tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import horovod.torch, deft_horovod.torch, deft_horovod._C as c, deft_horovod.plan\n"
        "print(horovod.__file__, deft_horovod.__file__, c.__file__, sep='\\n')\n"
    )
    files = run(sys.executable, "-c", program, str(target), cwd=tmp_path).split()
    assert [Path(file).is_relative_to(target) for file in files] == [True] * 3


def test_a_horovod_that_cannot_be_had_is_an_error_without_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOROVOD_CUDA_HOME", "CUDA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(bundle, "make_request", refuse)
    assert bundle.main(["--to", str(tmp_path), "--gpu", "nccl"]) == 1
    assert capsys.readouterr().err == "error: gpu nccl, mpi False\n"


def refuse(gpu: str, mpi: bool, _: Path | None) -> None:
    raise bundle.BuildError(f"gpu {gpu}, mpi {mpi}")


def test_the_command_that_installs() -> None:
    here = Path("wheels")
    assert bundle.install_command(here, dependencies=True).endswith(
        "--find-links wheels deft_horovod"
    )
    assert "wheels/horovod-*.whl" in bundle.install_command(here, dependencies=False)
