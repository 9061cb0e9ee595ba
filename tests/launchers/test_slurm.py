"""The scripts of docs/examples/slurm, on a real Slurm of two nodes, both on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from tests.launchers import slurm
from tests.places import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "slurm"
DDP = str(ROOT / "docs" / "examples" / "distributed" / "ddp.py")
PROGRAM = str(ROOT / "tests" / "launchers" / "program.py")
LIMIT_S = 60

pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurm.running(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


def printed(cluster: Mapping[str, str], *words: str, disabled: bool, **variables: str) -> str:
    """What a batch job of two tasks at most says, once it has ended well."""
    environment = {
        **cluster,
        "PYTHONPATH": str(ROOT),
        "DEFT_DISABLE": str(int(disabled)),
        "UNDER_SRUN": str(EXAMPLES / "under_srun.py"),
        **variables,
    }
    batch = ["sbatch", "--overcommit", "--cpus-per-task=1", "--output=%j.out"]
    return slurm.output_of([*batch, *words], environment, LIMIT_S)


def horovod_job(cluster: Mapping[str, str], *options: str, disabled: bool) -> tuple[str, str, str]:
    """Hosts and their ranks, whether the optimizer is ours, the parameters."""
    output = printed(cluster, *options, PROGRAM, disabled=disabled)
    ((shape, ours, digest),) = re.findall(r"(\d x \d) ours=(\w+) (\w{64})", output)
    return shape, ours, digest


def test_horovod_as_tasks_of_srun_and_by_horovodrun(cluster: dict[str, str]) -> None:
    srun = ("--nodes=2", "--ntasks-per-node=1", str(EXAMPLES / "srun.sbatch"))
    shape, ours, digest = horovod_job(cluster, *srun, disabled=False)
    assert (shape, ours) == ("2 x 1", "True")
    assert horovod_job(cluster, *srun, disabled=True) == (shape, "False", digest)
    launcher = ("--nodes=1", "--ntasks-per-node=2", str(EXAMPLES / "horovodrun.sbatch"))
    assert horovod_job(cluster, *launcher, disabled=False) == ("1 x 2", "True", digest)


def test_torchrun_trains_as_distributed_data_parallel(cluster: dict[str, str]) -> None:
    words = (str(EXAMPLES / "torchrun.sbatch"), "-m", "deft_horovod", "--torchrun", DDP)
    losses = [
        re.findall(r"^loss .*$", printed(cluster, *words, disabled=disabled), re.MULTILINE)
        for disabled in (False, True)
    ]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 1
