"""Trains with messages that wait side by side, and may be fused or not, as the test says."""

from __future__ import annotations

import os

import horovod.torch as stock

from tests.parallel.scripts.format_jobs import Job
from tests.parallel.scripts.late_plans import Late, plan_of
from tests.parallel.scripts.reporting import options, report
from tests.parallel.scripts.training import digest, mlp

STEPS = 50


def main() -> None:
    stock.init()
    os.environ["HOROVOD_GLOO_IFACE"] = ""  # no mesh: Horovod carries what is encoded, too
    asked = options()
    plan = plan_of(mlp(), [Late()] * 6, wire_format=asked["format"])
    link = plan.links[0].model_copy(update={"fusion": asked["fusion"]})
    job = Job(asked["format"], plan=plan.model_copy(update={"links": (link,)}))
    for _ in range(STEPS):
        job.step()
    report(digest(job.model.parameters()))


if __name__ == "__main__":
    main()
