"""Horovod is shut down while messages are handed over: each of them ends, none well."""

from __future__ import annotations

import pytest

from tests.parallel.launch import run_ranks

pytestmark = pytest.mark.timeout(60)


def test_no_message_is_forgotten() -> None:
    found, _ = run_ranks("failures/fail_shutdown.py", 2, timeout_s=40).require_success().results
    assert found["sent"] > 100
    assert found["lost"] == found["well"] == 0
