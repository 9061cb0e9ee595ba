"""``hvd.elastic``: failures lead back to the last commit, lost ranks leave, new ones join."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parallel.launch import Result, run_ranks

pytestmark = pytest.mark.timeout(120)

COMMITS = (6, 9)  # the last ones before the steps that fail; the next are 3 steps later


# Late updates within a few steps.
LATE = {
    "DEFT_PROFILE_WARMUP_STEPS": "1",
    "DEFT_PROFILE_STEPS": "1",
    "DEFT_PROBE_S": "0.02",
    "DEFT_WARMUP_STEPS": "0",
}


def commits(policy: str, failure: int = 0) -> tuple[int, ...]:
    """To which training goes back. With late updates a rank may be ahead of the one that fails, and
    have committed once more."""
    last = COMMITS[failure]
    return (last, last + 3) if policy == "deft" else (last,)


def run(
    tmp_path: Path,
    how: str,
    policy: str,
    hosts: tuple[str, ...],
    least: int,
    *,
    formats: bool = False,
    **environment: str,
) -> Result:
    """Several names of this machine are several hosts to Horovod, each lost on its own."""
    discover = tmp_path / "hosts.sh"
    discover.write_text("#!/bin/sh\n" + "".join(f"echo {host}\n" for host in hosts))
    discover.chmod(0o755)
    launcher = ["--network-interface", "lo", "--min-np", str(least), "--max-np", "2"]
    launcher += ["--blacklist-cooldown-range", "1", "2", "--host-discovery-script", str(discover)]
    job = run_ranks(
        "failures/fail_elastic.py",
        2,
        timeout_s=100,
        options={"how": how, "policy": policy, "regrow": how == "killed", "formats": formats},
        env={"DEFT_DEADLINE_S": "20", **LATE, **environment},
        launcher=launcher,
    )
    oldest = max(job.require_success().results, key=lambda rank: len(rank["history"]))
    for rank in job.results:
        assert rank["size"] == 2
        assert rank["equal"]
        if policy != "deft":
            # Bit for bit: all ranks have the same data, and the mean of two equal numbers is exact.
            # Only who was there from the beginning knows when ranks came and went.
            assert rank["parameters"] == oldest["expected"]
    return job


@pytest.mark.parametrize("policy", ["stock", "bucket", "priority", "deft"])
def test_an_error_of_horovod_leads_back_to_the_last_commit(tmp_path: Path, policy: str) -> None:
    """Twice in one job: an error that is raised, and one that others meet."""
    for rank in run(tmp_path, "errors", policy, ("localhost:2",), least=2).results:
        start, first, second = rank["history"]
        assert start == 0
        assert first in commits(policy)
        assert second in commits(policy, failure=1)


@pytest.mark.parametrize(
    ("policy", "warmup_steps"),
    [("stock", "0"), ("priority", "0"), ("deft", "0"), ("deft", "8")],
)
def test_a_killed_rank_leaves_and_a_new_one_joins(
    tmp_path: Path, policy: str, warmup_steps: str
) -> None:
    """With a warm-up the newcomer has all of it before itself, the survivor hardly anything."""
    hosts, warm = ("localhost:1", "127.0.0.1:1"), {"DEFT_WARMUP_STEPS": warmup_steps}
    ranks = run(tmp_path, "killed", policy, hosts, least=1, **warm).results
    survivor, newcomer = sorted(ranks, key=lambda rank: -len(rank["history"]))
    assert survivor["history"][:2] in [[0, commit] for commit in commits(policy)]
    assert newcomer["history"] == [survivor["history"][-1]]
    assert newcomer["plans"] == survivor["plans"]


def test_after_an_error_the_same_ranks_go_on_with_their_rests(tmp_path: Path) -> None:
    """Those of the last commit, bit for bit: as if nothing had happened."""
    job = run(tmp_path, "errors", "bucket", ("localhost:2",), least=2, formats=True)
    for rank in job.results:
        assert rank["formats"] == ["int8"]
        assert rank["history"] == [0, *COMMITS]
    assert "another number of ranks" not in job.output


def test_other_ranks_begin_without_rests(tmp_path: Path) -> None:
    """One is killed, the other trains on alone, a new one joins. The trajectory is that of a rank
    that has lost its rests twice."""
    hosts = ("localhost:1", "127.0.0.1:1")
    job = run(tmp_path, "killed", "bucket", hosts, least=1, formats=True)
    survivor, newcomer = sorted(job.results, key=lambda rank: -len(rank["history"]))
    assert survivor["history"][:2] == [0, COMMITS[0]]
    assert newcomer["history"] == [survivor["history"][-1]]
    assert survivor["formats"] == newcomer["formats"] == ["int8"]
    parameters = 6
    assert survivor["dropped_rests"] >= 2 * parameters
    assert newcomer["dropped_rests"] == 0
    assert "they belong to another number of ranks" in job.output
