"""What is compared with Horovod's own optimizer, for each number of ranks.

On two ranks, every policy meets every optimizer, accumulation, compression, process set and kind of
model; what concerns the messages alone is compared for the policies that send them. More ranks take
their time on a small machine, so there the covering is coarser.
"""

from __future__ import annotations

from dataclasses import dataclass

EXECUTED = ("wfbp", "bucket", "priority")
POLICIES = ("stock", *EXECUTED, "auto")
# Exact ones that plan from a profile, or as other libraries do.
RIVALS = ("bytescheduler", "dcredit", "ddp", "dear", "mgwfbp", "p3", "usbyte")
OPTIMIZERS = ("sgd", "adam", "adamw")
STEPS = 24  # plans here have a period of one step, and the last one comes after some fifteen
PROFILED_STEPS = 4  # of the rivals: one to warm up, and those that are measured


@dataclass(frozen=True)
class Case:
    """One training run with ours, and the same with Horovod's."""

    policy: str
    optimizer: str = "sgd"
    model: str = "mlp"
    passes: int = 1
    compression: str = "none"
    op: str = "Average"
    predivide: float = 1.0
    groups: str = ""  # "2", or "lists"
    ranks: str = "all"  # the process set: "all", "first", "parity", "pair"
    sync_every: int = 1  # apply what is held back and compare replicas every so many steps

    @property
    def name(self) -> str:
        """Only what differs from the default."""
        words = [self.policy, self.optimizer, self.model]
        words += [f"{self.passes}passes"] if self.passes > 1 else []
        words += [self.compression] if self.compression != "none" else []
        words += [self.op] if self.op != "Average" else []
        words += [f"predivide{self.predivide:g}"] if self.predivide != 1.0 else []
        words += [f"groups-{self.groups}"] if self.groups else []
        words += [f"set-{self.ranks}"] if self.ranks != "all" else []
        words += [f"sync{self.sync_every}"] if self.sync_every != 1 else []
        return "-".join(words)


# Any two of optimizer, accumulation and compression meet.
_PAIRS = (
    ("sgd", 1, "none"),
    ("sgd", 2, "fp16"),
    ("adam", 1, "fp16"),
    ("adam", 2, "none"),
    ("adamw", 1, "none"),
    ("adamw", 2, "fp16"),
)


def _two_ranks() -> list[Case]:
    cases = [
        Case(policy, optimizer, passes=passes, compression=compression)
        for policy in POLICIES
        for optimizer, passes, compression in _PAIRS
    ]
    cases += [
        Case(policy, "adam", model) for policy in POLICIES for model in ("cnn", "tied", "mixed")
    ]
    # Held back from step to step: nothing is applied early for the sake of the comparison.
    cases += [
        Case("priority", optimizer, model, passes, sync_every=STEPS)
        for optimizer, model, passes in (
            ("sgd", "mlp", 1),
            ("adam", "cnn", 1),
            ("adamw", "tied", 2),
            ("sgd", "mixed", 1),
        )
    ]
    cases += [Case(policy, op="Sum") for policy in ("stock", *EXECUTED)]
    cases += [Case(policy, predivide=3.0) for policy in ("stock", *EXECUTED)]
    cases += [
        Case(policy, "adam", groups=groups)
        for policy in ("stock", "bucket")
        for groups in ("2", "lists")
    ]
    cases += [Case(policy, "sgd", ranks="first") for policy in POLICIES]
    for policy in RIVALS:
        cases += [
            Case(policy, "sgd"),
            Case(policy, "adam", "mixed", compression="fp16"),
            Case(policy, "adamw", "cnn", passes=2, sync_every=STEPS),
            Case(policy, op="Sum", sync_every=STEPS),
            Case(policy, predivide=3.0, sync_every=STEPS),
        ]
    return cases


def _three_ranks() -> list[Case]:
    cases = []
    for policy in EXECUTED:
        cases += [
            Case(policy, "sgd"),
            Case(policy, "adam", passes=2),
            Case(policy, "adamw", compression="fp16"),
            Case(policy, "adam", "double"),
            Case(policy, ranks="pair"),
        ]
    cases += [Case(policy, "adam", passes=2) for policy in ("stock", "auto")]
    cases += [Case("priority", "sgd", "double", sync_every=STEPS)]
    cases += [Case(policy) for policy in RIVALS]
    return cases


def _four_ranks() -> list[Case]:
    cases = []
    for policy, model in zip(EXECUTED, ("cnn", "tied", "mixed"), strict=True):
        cases += [
            Case(policy, "sgd", model),
            Case(policy, "adamw", passes=2),
            Case(policy, "adam", compression="fp16"),
            Case(policy, ranks="parity"),
        ]
    cases += [Case(policy, "sgd", "double") for policy in ("stock", "auto")]
    cases += [
        Case("bucket", "sgd", "double", predivide=3.0),
        Case("wfbp", "sgd", "double", op="Sum"),
        Case("bucket", "sgd", "double", groups="2"),
    ]
    cases += [Case(policy, "adam") for policy in RIVALS]
    return cases


def cases_at(np: int) -> list[Case]:
    """What is compared on so many ranks."""
    return {2: _two_ranks, 3: _three_ranks, 4: _four_ranks}[np]()
