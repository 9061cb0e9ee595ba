"""The examples of docs/examples/ray, on a real Ray of this machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.launchers.examples import EXAMPLES, printed

pytest.importorskip("ray", reason="Ray is not installed: scripts/test.sh launchers")
pytestmark = pytest.mark.timeout(300)
LIMIT_S = 120


def test_executor_trains_as_with_stock_horovod() -> None:
    said = [
        re.findall(r"^rank \d: loss .*$", printed(script, limit_s=LIMIT_S, DEFT_DISABLE=disabled), re.M)
        for script, disabled in [(EXAMPLES / "ray" / "executor.py", word) for word in "01"]
    ]
    assert said[0] == said[1]
    assert len({line.split(", ")[1] for line in said[0]}) == 1
    assert len(said[0]) == 2


def loss_in(output: str) -> str:
    return re.findall(r"loss [\d.e-]+", output)[-1]


def test_trainer_of_ray_train_has_the_loss_of_ddp() -> None:
    ours = printed(EXAMPLES / "ray" / "torch_trainer.py", limit_s=LIMIT_S)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    ddp = printed(*launcher, EXAMPLES / "distributed" / "ddp.py", limit_s=LIMIT_S)
    assert loss_in(ours) == loss_in(ddp)
