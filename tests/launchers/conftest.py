"""What jobs of all launchers are compared with: the same training by stock Horovod, and by DDP."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import re
from pathlib import Path

import pytest

from tests.launchers.examples import EXAMPLES, printed
from tests.places import ROOT

pytest.importorskip("horovod", reason="most of these tests run Horovod")
if importlib.util.find_spec("deft_horovod._C") is None:
    pytest.skip("deft_horovod._C is not built", allow_module_level=True)

LIMIT_S = 120
# Of programs without ours: a rank of torch's DDP aborts now and then while it ends.
ATTEMPTS = 3


def found_once(factory: pytest.TempPathFactory, pattern: str, *words: str | Path) -> str:
    """What `python WORDS` prints; workers of pytest share it."""
    folder = factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with (folder / f"{Path(words[-1]).stem}.found").open("a+") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)
        kept.seek(0)
        found = kept.read()
        if not found:
            (found,) = re.findall(pattern, _printed_by_others(*words), re.MULTILINE)
            kept.write(found)
    return found


def _printed_by_others(*words: str | Path) -> str:
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(AssertionError):
            return printed(*words, limit_s=LIMIT_S)
    return printed(*words, limit_s=LIMIT_S)


@pytest.fixture(scope="session")
def stock_digest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of the parameters that tests/launchers/program.py trains on two ranks, as do the examples."""
    program = ROOT / "tests" / "launchers" / "program.py"
    launcher = ("-m", "horovod.runner.launch", "-np", "2", "python")
    return found_once(tmp_path_factory, r"1 x 2 ours=False (\w{16})", *launcher, program)


@pytest.fixture(scope="session")
def ddp_loss(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of docs/examples/distributed/ddp.py on two ranks."""
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    script = EXAMPLES / "distributed" / "ddp.py"
    return found_once(tmp_path_factory, r"^loss (.*)$", *launcher, script)
