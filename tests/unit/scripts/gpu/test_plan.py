"""The stages of the GPU check, for a GPU and for a dry run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts.gpu import plan
from tests.unit.scripts.conftest import SCRIPTS


def stages_of(folder: Path, device: str, build: bool) -> list[Any]:
    root = SCRIPTS.parent
    places = (folder / "out", folder / "work", folder / "carry")
    return list(plan.stages_of(plan.Settings(root, *places, device, build)))


def test_a_gpu_gets_both_kinds_of_horovod(tmp_path: Path) -> None:
    stages = stages_of(tmp_path, "cuda", build=True)
    assert [stage.name for stage in stages] == [
        "facts",
        "build-staged",
        "kernels",
        "pack",
        "codec",
        *(f"ranks-staged-{name}" for name in plan.RANK_TESTS),
        "training-staged-2",
        "training-staged-4",
        "profiles-tf32",
        "build-nccl",
        "overhead",
        "nccl-version",
        *(f"ranks-nccl-{name}" for name in plan.RANK_TESTS),
        "training-nccl-2",
        "training-nccl-4",
        "links",
        "profiles-bf16",
    ]
    by_name = {stage.name: stage for stage in stages}
    for name, stage in by_name.items():
        kind = "nccl" if "nccl" in name or name == "overhead" else "staged"
        if name == "facts" or name.startswith("build-"):
            assert stage.needs == ()
            continue
        assert stage.needs[0] == f"build-{kind}"
        assert stage.command[0] == str(tmp_path / "work" / kind / "venv" / "bin" / "python")
        assert stage.folder == tmp_path / "work" / kind / "tree"
        shared = kind == "nccl"
        assert ("NCCL_MULTI_RANK_GPU_ENABLE" in stage.environment) == shared
        assert ("LD_PRELOAD" in stage.environment) == shared
    assert by_name["ranks-nccl-parity"].needs[1] == "nccl-version"


def test_every_test_of_ranks_has_a_stage() -> None:
    files = (SCRIPTS.parent / "tests" / "gpu").glob("test_*_ranks.py")
    names = {path.name.removeprefix("test_").removesuffix("_ranks.py") for path in files}
    assert names == {*plan.RANK_TESTS}


def test_a_dry_run_takes_what_is_installed_and_small_models(tmp_path: Path) -> None:
    stages = stages_of(tmp_path, "cpu", build=False)
    assert not [stage.name for stage in stages if "build" in stage.name or "nccl" in stage.name]
    assert {stage.needs for stage in stages} == {()}
    words = " ".join(word for stage in stages for word in stage.command)
    assert "tiny_resnet" in words
    assert "resnet50" not in words
    assert "gpt2_medium" not in words


@pytest.mark.parametrize(("device", "build"), [("cuda", True), ("cpu", True), ("cpu", False)])
def test_stages_can_be_run_in_their_order(tmp_path: Path, device: str, build: bool) -> None:
    seen: set[str] = set()
    for stage in stages_of(tmp_path, device, build):
        assert stage.name not in seen
        assert set(stage.needs) <= seen
        assert stage.least_s < stage.limit_s < 600, "a call lasts ten minutes at most"
        module = stage.command[stage.command.index("-m") + 1]
        assert (SCRIPTS.parent / f"{module.replace('.', '/')}.py").is_file()
        assert stage.command[-1] == device or module == "scripts.gpu.build"
        seen.add(stage.name)
