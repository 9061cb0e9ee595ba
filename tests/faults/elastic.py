"""Elastic training: a rank fails or is lost, and comes back; training ends as if nothing was."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tests.faults.jobs import environment
from tests.faults.scripts.draw_fatal import Fatal
from tests.parallel.launch import SCRIPTS, JobHungError, run_ranks

LIMIT_S: Final = 150.0
HOW: Final = {"elastic error": "error", "elastic metric": "metric", "elastic killed": "killed"}
LATE: Final = ("deft", "auto", "least_stale")


def run_elastic(fatal: Fatal) -> list[str]:
    """The job, and all that is wrong with what came of it."""
    how, policy = HOW[fatal.kind], fatal.elastic_policy
    # Several names of this machine are several hosts to Horovod, each lost on its own.
    lost = how == "killed"
    hosts = ("localhost:1", "127.0.0.1:1") if lost else ("localhost:2",)
    with tempfile.TemporaryDirectory(prefix="deft-elastic-") as folder:
        discover = Path(folder) / "hosts.sh"
        discover.write_text("#!/bin/sh\n" + "".join(f"echo {host}\n" for host in hosts))
        discover.chmod(0o755)
        launcher = ["--network-interface", "lo", "--min-np", "1" if lost else "2", "--max-np", "2"]
        launcher += ["--blacklist-cooldown-range", "1", "2"]
        launcher += ["--host-discovery-script", str(discover)]
        try:
            job = run_ranks(
                SCRIPTS / "failures" / "fail_elastic.py",
                2,
                timeout_s=LIMIT_S,
                options={"how": how, "policy": policy, "regrow": lost},
                env=environment({"DEFT_DEADLINE_S": "30"}),
                launcher=launcher,
            )
        except JobHungError as error:
            return [str(error)]
    if job.returncode != 0 or not all(job.results):
        return [f"the job ended with status {job.returncode}:\n{job.output[-3000:]}"]
    wrong = []
    for rank, seen in enumerate(job.results):
        if seen["size"] != 2 or not seen["equal"]:
            wrong.append(f"rank {rank}: {seen['size']} ranks, replicas equal: {seen['equal']}")
        # All ranks have the same data, and the mean of two equal numbers is exact.
        if policy not in LATE and seen["parameters"] != seen["expected"]:
            wrong.append(f"rank {rank}: parameters are not those of training without failures")
    return wrong
