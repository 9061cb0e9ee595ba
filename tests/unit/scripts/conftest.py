"""The scripts are no package: they are loaded from their files."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.places import ROOT

SCRIPTS = ROOT / "scripts"
sys.path.insert(0, str(SCRIPTS))  # those of the convergence study import each other


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DEFT_HOROVOD_SDIST", raising=False)
    yield load_script("horovod_source")
    sys.modules.pop("horovod_source", None)


@pytest.fixture
def wheel(source: ModuleType) -> Iterator[ModuleType]:
    yield load_script("horovod_wheel")
    sys.modules.pop("horovod_wheel", None)


@pytest.fixture
def rules() -> Iterator[ModuleType]:
    yield load_script("check_rules")
    sys.modules.pop("check_rules", None)


def one_script(name: str) -> Iterator[ModuleType]:
    yield load_script(name)
    sys.modules.pop(name, None)


@pytest.fixture
def jobs() -> Iterator[ModuleType]:
    yield from one_script("jobs")


@pytest.fixture
def cubin_report() -> Iterator[ModuleType]:
    yield from one_script("cubin_report")


@pytest.fixture
def workloads() -> Iterator[ModuleType]:
    yield from one_script("workloads")


@pytest.fixture
def accelerator(workloads: ModuleType) -> Iterator[ModuleType]:
    yield from one_script("accelerator")


@pytest.fixture
def cluster(jobs: ModuleType) -> Iterator[ModuleType]:
    yield from one_script("cluster")


@pytest.fixture
def demo(cluster: ModuleType) -> Iterator[ModuleType]:
    yield from one_script("demo")


@pytest.fixture
def overhead(jobs: ModuleType) -> Iterator[ModuleType]:
    yield from one_script("bench_overhead")


@pytest.fixture
def arms(accelerator: ModuleType) -> Iterator[ModuleType]:
    yield from one_script("bench_arms")


@pytest.fixture
def rivals() -> Iterator[ModuleType]:
    yield from one_script("bench_rivals")


@pytest.fixture
def bench_picture(arms: ModuleType, rivals: ModuleType) -> Iterator[ModuleType]:
    yield from one_script("bench_picture")


@pytest.fixture
def report(bench_picture: ModuleType) -> Iterator[ModuleType]:
    yield from one_script("bench_report")


@pytest.fixture
def bench(report: ModuleType, cluster: ModuleType) -> Iterator[ModuleType]:
    yield from one_script("bench")


@pytest.fixture
def bench_profiler() -> Iterator[ModuleType]:
    yield from one_script("bench_profiler")


@pytest.fixture
def bench_prediction() -> Iterator[ModuleType]:
    yield from one_script("bench_prediction")


@pytest.fixture
def predicted(arms: ModuleType) -> Iterator[ModuleType]:
    yield from one_script("bench_predicted")


# In the order in which they import each other.
REPRODUCTION = (
    "facts",
    "workloads",
    "model_shapes",
    "reproduction",
    "reproduction_page",
    "reproduction_inputs",
    "reproduction_script",
)
REPRODUCED = ("ddl_benchmarks", "deft", "dear", "usbyte", "dcredit")


@pytest.fixture
def reproduction() -> Iterator[SimpleNamespace]:
    """All modules of the published comparisons, by name."""
    names = [*REPRODUCTION, *(f"reproduce_{name}" for name in REPRODUCED)]
    yield SimpleNamespace(**{name: load_script(name) for name in names})
    for name in names:
        sys.modules.pop(name, None)
