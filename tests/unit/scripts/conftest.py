"""What several tests of scripts share."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import scripts.horovod.source
import scripts.horovod.wheel
from deft_horovod.workloads import catalogue as model_shapes
from scripts.cluster import workloads
from scripts.studies.reproduce import (
    dcredit,
    ddl_benchmarks,
    dear,
    deft,
    facts,
    inputs,
    page,
    script,
    usbyte,
)
from scripts.studies.reproduce import reproduction as reproduced
from tests.places import ROOT

SCRIPTS = ROOT / "scripts"


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DEFT_HOROVOD_SDIST", raising=False)
    return scripts.horovod.source


@pytest.fixture
def wheel(source: ModuleType) -> ModuleType:
    return scripts.horovod.wheel


@pytest.fixture
def reproduction() -> SimpleNamespace:
    """All modules of the published comparisons, by name."""
    return SimpleNamespace(
        facts=facts,
        reproduction=reproduced,
        reproduction_page=page,
        reproduction_inputs=inputs,
        reproduction_script=script,
        reproduce_ddl_benchmarks=ddl_benchmarks,
        reproduce_deft=deft,
        reproduce_dear=dear,
        reproduce_usbyte=usbyte,
        reproduce_dcredit=dcredit,
        workloads=workloads,
        model_shapes=model_shapes,
    )
