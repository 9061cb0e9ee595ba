"""The examples of docs/examples/ray, on a real Ray of this machine."""

from __future__ import annotations

import re

import pytest

from tests.launchers.examples import EXAMPLES, printed
from tests.launchers.slurm import free_ports
from tests.places import ROOT

pytest.importorskip("ray", reason="Ray is not installed: scripts/test.sh launchers")
pytestmark = pytest.mark.timeout(360)
LIMIT_S = 180


def test_executor_trains_as_stock_horovod(stock_digest: str) -> None:
    output = printed(EXAMPLES / "ray" / "executor.py", limit_s=LIMIT_S)
    assert re.findall(r"rank (\d): loss .*, (\w{16})", output) == [
        ("0", stock_digest),
        ("1", stock_digest),
    ]


def test_trainer_of_ray_train_has_the_loss_of_ddp(ddp_loss: str) -> None:
    output = printed(EXAMPLES / "ray" / "torch_trainer.py", limit_s=LIMIT_S)
    assert set(re.findall(r" loss ([\d.e-]+)$", output, re.MULTILINE)) == {ddp_loss}


def test_others_go_on_from_the_last_commit_when_a_worker_is_killed() -> None:
    port = str(free_ports(1)[0])
    program = ROOT / "tests" / "launchers" / "killed_worker.py"
    output = printed(program, EXAMPLES / "ray" / "elastic.py", port, limit_s=LIMIT_S)
    (ranks,) = re.findall(r"^ranks of each step: (.*)$", output, re.MULTILINE)
    assert ranks.split() == ["2"] * 10 + ["1"] * 10
