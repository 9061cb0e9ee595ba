"""What jobs of all launchers are compared with: the same training by stock Horovod, and by DDP."""

from __future__ import annotations

import importlib.util
import re

import pytest

from tests.launchers.examples import EXAMPLES, printed
from tests.places import ROOT

pytest.importorskip("horovod", reason="most of these tests run Horovod")
if importlib.util.find_spec("deft_horovod._C") is None:
    pytest.skip("deft_horovod._C is not built", allow_module_level=True)

LIMIT_S = 120


@pytest.fixture(scope="session")
def stock_digest() -> str:
    """Of the parameters that tests/launchers/program.py trains on two ranks, as do the examples."""
    program = ROOT / "tests" / "launchers" / "program.py"
    output = printed("-m", "horovod.runner.launch", "-np", "2", "python", program, limit_s=LIMIT_S)
    (digest,) = re.findall(r"1 x 2 ours=False (\w{16})", output)
    return digest


@pytest.fixture(scope="session")
def ddp_loss() -> str:
    """Of docs/examples/distributed/ddp.py on two ranks."""
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    output = printed(*launcher, EXAMPLES / "distributed" / "ddp.py", limit_s=LIMIT_S)
    (loss,) = re.findall(r"^loss (.*)$", output, re.MULTILINE)
    return loss
