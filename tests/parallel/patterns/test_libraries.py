"""The scripts of docs/guide/libraries.md train as with stock Horovod, bit for bit."""

from __future__ import annotations

import re

import pytest

from tests.parallel.launch import run_ranks
from tests.places import ROOT

pytestmark = pytest.mark.timeout(300)

EXAMPLES = ROOT / "docs" / "examples" / "libraries"


def trained(example: str, *words: str, disabled: bool) -> str:
    """What rank 0 says of its steps, and the hash of its parameters."""
    env = {"DEFT_DISABLE": str(int(disabled)), "DEFT_ACCURACY": "exact"}
    job = run_ranks(EXAMPLES / example, 2, *words, env=env)
    assert job.returncode == 0, job.output
    (said,) = re.findall(r"^.* steps,.* [0-9a-f]{16}$", job.out_by_rank[0], re.MULTILINE)
    return said


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_it_trains_as_with_stock_horovod(example: str) -> None:
    assert trained(example, disabled=False) == trained(example, disabled=True)


def test_closures_of_lightning_keep_replicas_equal() -> None:
    assert "replicas equal" in trained("lightning_module.py", "--automatic", disabled=False)
