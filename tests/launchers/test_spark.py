"""The example of docs/examples/spark, on a real Spark of this machine."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.launchers.examples import EXAMPLES, printed

pytest.importorskip("pyspark", reason="Spark is not installed: scripts/test.sh launchers")
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        shutil.which("java") is None, reason="no java: apt-get install -y default-jre-headless"
    ),
]


def trained(disabled: str) -> list[str]:
    output = printed(EXAMPLES / "spark" / "run.py", limit_s=140, DEFT_DISABLE=disabled)
    return re.findall(r"rank \d: loss .*$", output, re.MULTILINE)


def test_it_trains_as_with_stock_horovod() -> None:
    ours = trained(disabled="0")
    assert len(ours) == 2
    assert ours == trained(disabled="1")
