"""US-Byte's comparison (IEEE TPDS 2024) in the simulator: 8 nodes, and up to 128 GPUs."""

from __future__ import annotations

import sys

from scripts.studies.reproduce.facts import Facts
from scripts.studies.reproduce.inputs import backward_ratio, extrapolated, job
from scripts.studies.reproduce.reproduction import Job, Network
from scripts.studies.reproduce.script import Cells, Claim, Comparison, main, up_to

# Its models with an embedded table of forward times; whose published ratio of backward to forward
# is taken for each.
MODELS = {
    "vgg16": ("VGG-16", "vgg16"),
    "resnet50": ("ResNet-50", "resnet50"),
    "resnet152": ("ResNet-152", "resnet101"),
    "densenet201": ("DenseNet-201", "densenet121"),
}
FIT = (4, 8)
RANKS = (8, 32, 64, 128)
MEASURED = {"usbyte.8": "8 workers", "usbyte.32": "32 workers"}
RIVALS = {
    "bytescheduler": ("usbyte.bytescheduler", "ByteScheduler, tuned"),
    "bytescheduler_sizes": ("usbyte.bytescheduler", "ByteScheduler, published sizes"),
    "wfbp": ("usbyte.wfbp", "WFBP, nothing fused"),
}


def jobs(facts: Facts) -> list[Job]:
    """From the sums of the forward times in its code."""
    found = []
    for name, (title, like) in MODELS.items():
        forward_ms = facts[f"usbyte.{name}.forward"]
        ratio = backward_ratio(facts, like)
        why = f"backward over forward as in the published profile of {like}"
        facts.assume(f"ratio.{name}", round(ratio, 3), "of forward", why)
        found.append(job(facts, name, title, forward_ms * (1.0 + ratio), ratio))
    return found


def networks(facts: Facts) -> list[Network]:
    found = [extrapolated(facts, "usbyte", f"{ranks} workers", FIT, ranks) for ranks in RANKS]
    title = "8 workers, their fit as per element"
    return [*found, extrapolated(facts, "usbyte", title, FIT, FIT[1], per_element=True)]


def claims(cells: Cells, facts: Facts) -> list[Claim]:
    """Each headline for US-Byte, and beside it for the best exact plan of our solver."""
    many = int(facts["usbyte.simulated.gpus"])
    found = []
    for arm, title in (("usbyte", "US-Byte"), ("least_stale", "least_stale, exact,")):
        other = arm != "usbyte"
        for network, place in MEASURED.items():
            there = [cell for cell in cells if cell["network"] == network]
            for rival, (figure, name) in RIVALS.items():
                said = (
                    f"8 nodes: US-Byte over {name.split(',')[0]}; here {title} over {name}, {place}"
                )
                found.append(up_to(there, arm, rival, facts[figure], said, stand_in=other))
        all_ranks = [cell for cell in cells if cell["ranks"] <= many]
        for rival, (_, name) in RIVALS.items():
            said = f"simulated, up to {many} GPUs; here {title} over {name}"
            published = facts["usbyte.simulated"]
            found.append(up_to(all_ranks, arm, rival, published, said, stand_in=other))
    return found


INTRO = """\
US-Byte (IEEE TPDS 2024) sends blocks of unequal size. Its abstract says: on two clusters of 8
nodes up to 1.26 times as fast as ByteScheduler and 1.56 times as WFBP, and simulated with up to
128 GPUs up to 1.69 times. Its code holds forward times of models and what an all-reduce costs
between 2, 4 and 8 workers; everything here is computed from these.
"""
NOTES = """\
- With the published forward times and link fits communication takes 1 to 30 % of computing. So
  rivals that fuse (stock Horovod, DDP, MG-WFBP) are within a few percent of the floor, and what a
  schedule can gain is what start-ups cost those that fuse nothing.
- What fuses (`least_stale`) gains over these by start-ups alone, and so by how many workers these
  are extrapolated to: without limit if each round of the ring costs what it does between 4 and 8
  workers. US-Byte fuses no two gradients either.
- The fit is per byte, while the code multiplies it by elements. Read per element a link is four
  times as fast; the last network is that reading.
- Backward is not in the code. It is assumed to be to forward what it is in the published profile
  of a like model. Times within a model go by arithmetic, not by parameters as in the code.
- ByteScheduler is tuned here on the simulated timeline, which is better than the tuning in the
  running job; the row with published sizes is not tuned.
"""

COMPARISON = Comparison("usbyte", "US-Byte on up to 128 GPUs", INTRO, jobs, networks, claims, NOTES)

if __name__ == "__main__":
    sys.exit(main(COMPARISON, sys.argv[1:]))
