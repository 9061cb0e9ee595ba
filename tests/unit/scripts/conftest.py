"""Scripts as fixtures, by short names."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.places import ROOT

SCRIPTS = ROOT / "scripts"


def load_script(name: str) -> ModuleType:
    return importlib.import_module(name)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DEFT_HOROVOD_SDIST", raising=False)
    return load_script("scripts.horovod.source")


@pytest.fixture
def wheel(source: ModuleType) -> ModuleType:
    return load_script("scripts.horovod.wheel")


@pytest.fixture
def rules() -> ModuleType:
    return load_script("scripts.checks.rules")


@pytest.fixture
def jobs() -> ModuleType:
    return load_script("scripts.cluster.jobs")


@pytest.fixture
def cubin_report() -> ModuleType:
    return load_script("scripts.checks.cubins")


@pytest.fixture
def workloads() -> ModuleType:
    return load_script("scripts.cluster.workloads")


@pytest.fixture
def accelerator() -> ModuleType:
    return load_script("scripts.cluster.accelerator")


@pytest.fixture
def cluster() -> ModuleType:
    return load_script("scripts.cluster.cluster")


@pytest.fixture
def demo() -> ModuleType:
    return load_script("scripts.demo")


@pytest.fixture
def overhead() -> ModuleType:
    return load_script("scripts.benchmarks.overhead")


@pytest.fixture
def arms() -> ModuleType:
    return load_script("scripts.benchmarks.arms")


@pytest.fixture
def rivals() -> ModuleType:
    return load_script("scripts.benchmarks.rivals")


@pytest.fixture
def bench_picture() -> ModuleType:
    return load_script("scripts.benchmarks.picture")


@pytest.fixture
def report() -> ModuleType:
    return load_script("scripts.benchmarks.report")


@pytest.fixture
def bench() -> ModuleType:
    return load_script("scripts.benchmarks.cluster")


@pytest.fixture
def bench_profiler() -> ModuleType:
    return load_script("scripts.benchmarks.profiler")


@pytest.fixture
def bench_prediction() -> ModuleType:
    return load_script("scripts.benchmarks.late_updates")


@pytest.fixture
def predicted() -> ModuleType:
    return load_script("scripts.benchmarks.predicted")


REPRODUCED = ("ddl_benchmarks", "deft", "dear", "usbyte", "dcredit")


@pytest.fixture
def reproduction() -> SimpleNamespace:
    """All modules of the published comparisons, by name."""
    room = "scripts.studies.reproduce"
    modules = {name: load_script(f"{room}.{name}") for name in ("facts", "reproduction")}
    modules |= {
        f"reproduction_{name}": load_script(f"{room}.{name}")
        for name in ("page", "inputs", "script")
    }
    modules |= {f"reproduce_{name}": load_script(f"{room}.{name}") for name in REPRODUCED}
    shapes = {
        name: load_script(f"scripts.cluster.{name}") for name in ("workloads", "model_shapes")
    }
    return SimpleNamespace(**modules, **shapes)
