"""The example of docs/examples/spark, on a real Spark of this machine."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.launchers.examples import EXAMPLES, printed

pytest.importorskip("pyspark", reason="Spark is not installed: scripts/test.sh launchers")
pytestmark = [
    pytest.mark.timeout(360),
    pytest.mark.skipif(
        shutil.which("java") is None, reason="no java: apt-get install -y default-jre-headless"
    ),
]


def test_it_trains_as_stock_horovod(stock_digest: str) -> None:
    output = printed(EXAMPLES / "spark" / "run.py", limit_s=180)
    assert re.findall(r"rank (\d): loss .*, (\w{16})", output) == [
        ("0", stock_digest),
        ("1", stock_digest),
    ]
