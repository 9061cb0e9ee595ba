"""The examples of docs/examples/ray, on a real Ray of this machine."""

from __future__ import annotations

import re
import socket

import pytest

from tests.launchers.examples import EXAMPLES, printed
from tests.places import ROOT

pytest.importorskip("ray", reason="Ray is not installed: scripts/test.sh launchers")
pytestmark = pytest.mark.timeout(300)
LIMIT_S = 120


def executed(disabled: str) -> list[str]:
    output = printed(EXAMPLES / "ray" / "executor.py", limit_s=LIMIT_S, DEFT_DISABLE=disabled)
    return re.findall(r"^rank \d: loss .*$", output, re.MULTILINE)


def test_executor_trains_as_with_stock_horovod() -> None:
    ours = executed(disabled="0")
    assert len(ours) == 2
    assert len({line.split(", ")[1] for line in ours}) == 1
    assert ours == executed(disabled="1")


def loss_in(output: str) -> str:
    return re.findall(r"loss [\d.e-]+", output)[-1]


def test_trainer_of_ray_train_has_the_loss_of_ddp() -> None:
    ours = printed(EXAMPLES / "ray" / "torch_trainer.py", limit_s=LIMIT_S)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    ddp = printed(*launcher, EXAMPLES / "distributed" / "ddp.py", limit_s=LIMIT_S)
    assert loss_in(ours) == loss_in(ddp)


def test_others_go_on_from_the_last_commit_when_a_worker_is_killed() -> None:
    with socket.create_server(("", 0)) as free:
        port = str(free.getsockname()[1])
    program = ROOT / "tests" / "launchers" / "killed_worker.py"
    output = printed(program, EXAMPLES / "ray" / "elastic.py", port, limit_s=LIMIT_S)
    (ranks,) = re.findall(r"^ranks of each step: (.*)$", output, re.MULTILINE)
    assert ranks.split() == ["2"] * 10 + ["1"] * 10
