"""D-Credit's comparison (IEEE TNSE 2025) in the simulator: clusters of 8 nodes."""

from __future__ import annotations

import sys

from scripts.studies.reproduce.facts import Facts
from scripts.studies.reproduce.inputs import extrapolated
from scripts.studies.reproduce.reproduction import Network
from scripts.studies.reproduce.script import Cells, Claim, Comparison, main, up_to
from scripts.studies.reproduce.usbyte import jobs

FIT = (2, 4)
RIVALS = {
    "bytescheduler": "ByteScheduler, tuned",
    "dear": "DeAR, whole start-ups",
    "ddp": "DDP",
    "wfbp": "WFBP, nothing fused",
}


def networks(facts: Facts) -> list[Network]:
    """Their fits are for 2 and 4 workers; the authors' other code has one for 8."""
    return [
        extrapolated(facts, "dcredit", "8 workers, their fit extrapolated", FIT, 8),
        extrapolated(facts, "dcredit", "32 workers, their fit extrapolated", FIT, 32),
        extrapolated(facts, "usbyte", "8 workers, US-Byte's fit", (4, 8), 8),
    ]


def claims(cells: Cells, facts: Facts) -> list[Claim]:
    """Each headline for D-Credit, and beside it for the best exact plan of our solver."""
    found = []
    for arm, title in (("dcredit", "D-Credit"), ("least_stale", "least_stale, exact,")):
        other = arm != "dcredit"
        for network in dict.fromkeys(cell["network"] for cell in cells):
            there = [cell for cell in cells if cell["network"] == network]
            for rival, name in RIVALS.items():
                said = f"{network}: D-Credit over {name.split(',')[0]}; here {title} over {name}"
                published = facts[f"dcredit.{rival}"]
                found.append(up_to(there, arm, rival, published, said, stand_in=other))
    return found


INTRO = """\
D-Credit (IEEE TNSE 2025) keeps several blocks in flight, as many as windows that it computes
allow. Its abstract says: up to 1.26 times as fast as ByteScheduler, 1.21 as DeAR, 1.48 as
PyTorch's DDP, 1.53 as WFBP. Its code holds what an all-reduce costs between 2 and 4 workers.
Clusters of 8 nodes are those of the same authors' US-Byte, and so are the models and their times
(assumed). Energy, of which the abstract speaks too, is not simulated.
"""
NOTES = """\
- As for [US-Byte](usbyte.md): with these inputs communication takes 2 to 40 % of computing, so
  rivals that fuse are near the floor. A gain of 1.48 over DDP or 1.21 over DeAR cannot come about
  there with any exact plan: floor and step time of the rival stand in the table. It would take
  slower links, or faster GPUs, than the code's figures say.
- Several messages in flight do not add up to more bandwidth in the simulator: a link works on one
  after another, and each has its whole start-up. If start-ups overlap on a real cluster, that is
  a gain of D-Credit (and of ByteScheduler's credit) that is not shown here.
- The start-up on 8 and 32 workers is extrapolated from 2 and 4; with US-Byte's fit for 8 it is
  half as large again.
"""

COMPARISON = Comparison("dcredit", "D-Credit on 8 nodes", INTRO, jobs, networks, claims, NOTES)

if __name__ == "__main__":
    sys.exit(main(COMPARISON, sys.argv[1:]))
