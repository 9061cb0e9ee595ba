"""Tests on a cluster of network namespaces; there is one at a time."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

pytest.importorskip("horovod", reason="these tests run under horovodrun")
if importlib.util.find_spec("deft_horovod._C") is None:
    pytest.skip("deft_horovod._C is not built", allow_module_level=True)

NEEDED = ("ip", "tc", "nsenter", "unshare", "chrt", "cc")


def why_not() -> str | None:
    """Why there can be no cluster here."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        return f"missing: {', '.join(missing)}"
    probe = f"probe-{uuid.uuid4().hex[:8]}"
    try:
        for words in (
            f"ip netns add {probe}",
            f"ip -n {probe} link add probe0 type veth peer name probe1",
            f"tc -n {probe} qdisc add dev probe0 root tbf rate 1mbit burst 4kb limit 1mb",
        ):
            done = subprocess.run(words.split(), capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return f"`{words}` failed: {done.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "delete", probe], capture_output=True, check=False)
    return None


@pytest.fixture(scope="session", autouse=True)
def possible() -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(f"no cluster here: {reason}")
    # The name that scripts/cluster/cluster.py holds while it is in use.
    with socket.socket(socket.AF_UNIX) as owner:
        try:
            owner.bind("\0deft-cluster")
        except OSError:
            pytest.skip("somebody is using the cluster, and there is one at a time")


@pytest.fixture
def no_cluster() -> Iterator[None]:
    """Whatever a test makes is gone after it."""
    yield
    subprocess.run(
        [sys.executable, "-m", "scripts.cluster.cluster", "down"], check=True, timeout=60
    )
