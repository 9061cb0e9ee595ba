"""What is compared with Horovod's own optimizer, for each number of ranks.

The optimizers, accumulation and compression are crossed in full for the policies whose gradients
flow through our executor; everything else is compared with at least two of them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

EXECUTED = ("wfbp", "bucket", "priority")
POLICIES = ("stock", *EXECUTED, "auto")
OPTIMIZERS = ("sgd", "adam", "adamw")
STEPS = 50


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


def _core(policies: tuple[str, ...]) -> list[Case]:
    return [
        Case(policy, optimizer, passes=passes, compression=compression)
        for policy, optimizer, passes, compression in itertools.product(
            policies, OPTIMIZERS, (1, 2), ("none", "fp16")
        )
    ]


def _two_ranks() -> list[Case]:
    cases = _core(EXECUTED)
    cases += [
        Case(policy, optimizer, passes=passes, compression=compression)
        for policy in ("stock", "auto")
        for optimizer, passes, compression in (
            ("sgd", 1, "none"),
            ("adam", 2, "fp16"),
            ("adamw", 1, "fp16"),
            ("adam", 2, "none"),
        )
    ]
    cases += [
        Case(policy, "adam", model)
        for policy in POLICIES
        for model in ("cnn", "tied", "double", "mixed", "channels_last")
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
    return cases


def _more_ranks(ranks: tuple[str, ...]) -> list[Case]:
    """Each policy with each optimizer, model, accumulation and compression at least once."""
    cases = []
    for i, policy in enumerate(POLICIES):
        for j, optimizer in enumerate(OPTIMIZERS):
            passes = 1 + (i + j) % 2
            cases.append(Case(policy, optimizer, "mlp", passes))
        cases.append(Case(policy, OPTIMIZERS[i % 3], "mlp", compression="fp16"))
        cases.append(Case(policy, OPTIMIZERS[(i + 1) % 3], "double"))
        cases.append(Case(policy, "sgd", ("cnn", "tied", "mixed")[i % 3]))
    cases += [Case(policy, "sgd", ranks=name) for policy in EXECUTED for name in ranks]
    cases += [
        Case("priority", "sgd", "double", sync_every=STEPS),
        Case("bucket", "sgd", "double", predivide=3.0),
        Case("wfbp", "sgd", "double", op="Sum"),
        Case("bucket", "sgd", "double", groups="2"),
    ]
    return cases


def cases_at(np: int) -> list[Case]:
    """What is compared on so many ranks."""
    if np == 2:
        return _two_ranks()
    return _more_ranks(("pair",) if np == 3 else ("parity",))
