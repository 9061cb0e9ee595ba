"""The scripts of docs/guide/libraries.md train as with stock Horovod, bit for bit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from tests.parallel.launch import Result, run_ranks
from tests.parallel.scripts.late_plans import Late, plan_of
from tests.places import ROOT

pytestmark = pytest.mark.timeout(300)

EXAMPLES = ROOT / "docs" / "examples" / "libraries"
NAMES = sorted(path.name for path in EXAMPLES.glob("*.py"))


def run(example: str, *words: str, **env: str) -> Result:
    job = run_ranks(EXAMPLES / example, 2, *words, env=env)
    assert job.returncode == 0, job.output
    return job


def trained(example: str, *words: str, disabled: bool) -> str:
    """What rank 0 says of its steps, and the hash of its parameters."""
    job = run(example, *words, DEFT_DISABLE=str(int(disabled)), DEFT_ACCURACY="exact")
    (said,) = re.findall(r"^.* steps,.* [0-9a-f]{16}$", job.out_by_rank[0], re.MULTILINE)
    return said


def optimizer_state(folder: Path) -> dict[str, Any]:
    """Of the last checkpoint, whoever wrote it. Nothing in it needs this package to be read."""
    (path,) = (
        *folder.glob("checkpoint-*/optimizer.pt"),
        *folder.glob("optimizer.bin"),
        *folder.glob("**/*.ckpt"),
    )
    state = torch.load(path, weights_only=path.suffix != ".ckpt")
    return state["optimizer_states"][0] if path.suffix == ".ckpt" else state


@pytest.mark.parametrize("precision", [(), ("--bf16",)])
@pytest.mark.parametrize("example", NAMES)
def test_it_trains_as_with_stock_horovod(
    example: str, precision: tuple[str, ...], tmp_path: Path
) -> None:
    words = (*precision, "--output", str(tmp_path))
    ours = trained(example, *words, disabled=False)
    state = optimizer_state(tmp_path)
    parameters = [torch.nn.Parameter(one["exp_avg"].clone()) for one in state["state"].values()]
    torch.optim.AdamW(parameters).load_state_dict(state)
    words = (*precision, "--output", str(tmp_path / "stock"))
    assert ours == trained(example, *words, disabled=True)


def layers() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 2))


def gpt2() -> nn.Module:
    size = {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 256, "n_positions": 32}
    return GPT2LMHeadModel(GPT2Config(**size))


MODELS = {
    "accelerated.py": layers,
    "lightning_module.py": lambda: nn.ModuleDict({"layers": layers()}),
    "trainer.py": gpt2,
}


@pytest.mark.parametrize("example", NAMES)
def test_late_updates_are_applied_before_it_ends(example: str, tmp_path: Path) -> None:
    model = MODELS[example]()
    late = plan_of(model, [Late(delay=1)] * len([*model.parameters()]))
    late.save(tmp_path / "plan.json")
    words = ("--output", str(tmp_path / "output"))
    job = run(example, *words, DEFT_PLAN_FILE=str(tmp_path / "plan.json"))
    assert "updates may come up to 1 step late" in job.output
    assert "were never applied" not in job.output


def test_closures_of_lightning_keep_replicas_equal(tmp_path: Path) -> None:
    words = ("--automatic", "--output", str(tmp_path))
    assert "replicas equal" in trained("lightning_module.py", *words, disabled=False)
