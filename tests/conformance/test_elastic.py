"""Hosts and ranks that come and go: one job with Horovod's module, one with ours, equal notes."""

from __future__ import annotations

import functools
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.programs import SCRIPTS
from tests.parallel.launch import run_ranks

LIMIT_S = 240
pytestmark = pytest.mark.timeout(2 * LIMIT_S + 20)
HERE, ALSO_HERE = "localhost", "127.0.0.1"  # two hosts to Horovod, each lost on its own
QUICK = {
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "60",
    "DEFT_DEADLINE_S": "20",
    "DEFT_PROFILE_WARMUP_STEPS": "1",
    "DEFT_PROFILE_STEPS": "1",
    "DEFT_PROBE_S": "0.02",
}


@dataclass(frozen=True)
class Scenario:
    """How a job begins, and what happens to it."""

    hosts: dict[int, tuple[str, ...]]  # from which epoch on
    fails: dict[int, list[int]] = field(default_factory=dict)  # in which epoch, which ranks
    how: str = "error"
    launcher: tuple[str, ...] = ()


BOTH = {0: (f"{HERE}:1", f"{ALSO_HERE}:1")}
GROWS = {0: (f"{HERE}:1",), 1: BOTH[0], 2: (f"{ALSO_HERE}:1",)}
SCENARIOS = {
    "hosts_added_and_removed": Scenario(GROWS, launcher=("--reset-limit", "2")),
    "a_rank_fails": Scenario(BOTH, fails={1: [0]}),
    "a_rank_is_killed": Scenario(BOTH, fails={1: [0]}, how="kill"),
    "all_ranks_fail": Scenario(BOTH, fails={1: [0, 1]}),
    "reset_limit": Scenario(GROWS, launcher=("--reset-limit", "1")),
}


def _discovery(folder: Path, notes: Path, hosts: dict[int, tuple[str, ...]]) -> Path:
    """A script that prints other hosts from the epoch on after which rank 0 has noted it."""
    lines = ["#!/bin/bash", f"epochs=$(cat {notes} 2>/dev/null | wc -l)"]
    for epoch, names in sorted(hosts.items()):
        lines.append(f'if [ "$epochs" -ge {epoch} ]; then found="{" ".join(names)}"; fi')
    lines.append("for host in $found; do echo $host; done")
    script = folder / "hosts.sh"
    script.write_text("\n".join(lines) + "\n")
    script.chmod(0o755)
    return script


@functools.cache
def _outcome(name: str, module: str, policy: str) -> dict[str, Any]:
    scenario = SCENARIOS[name]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        notes = folder / "notes"
        script = _discovery(folder, notes, scenario.hosts)
        launcher = ["--network-interface", "lo", "--min-np", "1", "--max-np", "2"]
        launcher += [*scenario.launcher, "--host-discovery-script", str(script)]
        job = run_ranks(
            SCRIPTS / "elastic_job.py",
            len(scenario.hosts[0]),
            timeout_s=LIMIT_S,
            options={
                "module": module,
                "policy": policy,
                "notes": str(notes),
                "fails": scenario.fails,
                "how": scenario.how,
                "changes": [epoch - 1 for epoch in scenario.hosts if epoch],
            },
            env=QUICK,
            launcher=launcher,
        )
        written = notes.read_text().splitlines() if notes.is_file() else []
    found = [json.loads(line) for line in written]
    # Which of two hosts comes first is up to the launcher; that another one takes over is not.
    order = list(dict.fromkeys(note["host"] for note in found))
    numbered = [{**note, "host": order.index(note["host"])} for note in found]
    return {"succeeded": job.returncode == 0, "notes": numbered}


@pytest.mark.parametrize("name", SCENARIOS)
def test_case(name: str) -> None:
    policy = "auto" if name == "a_rank_is_killed" else "least_stale"
    theirs = _outcome(name, "horovod.torch", "")
    mine = _outcome(name, "deft_horovod.torch", policy)
    assert mine == theirs
    assert theirs["succeeded"] == (name not in {"all_ranks_fail", "reset_limit"})
