"""The scripts are no package: they are loaded from their files."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


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


@pytest.fixture
def cluster() -> Iterator[ModuleType]:
    yield load_script("cluster")
    sys.modules.pop("cluster", None)


@pytest.fixture
def demo(cluster: ModuleType) -> Iterator[ModuleType]:
    yield load_script("demo")
    sys.modules.pop("demo", None)


@pytest.fixture
def bench_profiler() -> Iterator[ModuleType]:
    yield load_script("bench_profiler")
    sys.modules.pop("bench_profiler", None)


@pytest.fixture
def bench() -> Iterator[ModuleType]:
    yield load_script("bench_overhead")
    sys.modules.pop("bench_overhead", None)
