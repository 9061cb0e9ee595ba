"""The scripts of docs/examples/slurm, on a real Slurm of two nodes, both on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from tests.launchers import slurm
from tests.launchers.examples import EXAMPLES
from tests.places import ROOT

PROGRAM = str(ROOT / "tests" / "launchers" / "program.py")
LIMIT_S = 100

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurm.running(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


def output_of(cluster: Mapping[str, str], *words: str) -> str:
    """What a batch job says, once it has ended well."""
    environment = {
        **cluster,
        "PYTHONPATH": str(ROOT),
        "MASTER_PORT": str(slurm.free_ports(1)[0]),
        "UNDER_SRUN": str(EXAMPLES / "slurm" / "under_srun.py"),
    }
    batch = ["sbatch", "--overcommit", "--cpus-per-task=1", "--output=%j.out"]
    return slurm.output_of([*batch, *words], environment, LIMIT_S)


@pytest.mark.parametrize(
    ("script", "nodes", "shape"), [("srun", 2, "2 x 1"), ("horovodrun", 1, "1 x 2")]
)
def test_it_trains_as_stock_horovod(
    cluster: dict[str, str], script: str, nodes: int, shape: str, stock_digest: str
) -> None:
    tasks = (f"--nodes={nodes}", f"--ntasks-per-node={2 // nodes}")
    batch = str(EXAMPLES / "slurm" / f"{script}.sbatch")
    assert f"{shape} ours=True {stock_digest}" in output_of(cluster, *tasks, batch, PROGRAM)


def test_torchrun_has_the_loss_of_ddp(cluster: dict[str, str], ddp_loss: str) -> None:
    script = str(EXAMPLES / "distributed" / "ddp.py")
    batch = str(EXAMPLES / "slurm" / "torchrun.sbatch")
    output = output_of(cluster, batch, "-m", "deft_horovod", "--torchrun", script)
    assert re.findall(r"^loss (.*)$", output, re.MULTILINE) == [ddp_loss]
