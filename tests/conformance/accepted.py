"""Where ours differs from Horovod's own module, and why a user can accept it.

A row is exact: the harness fails when ours gives anything else, and also when the difference is
gone. docs/reference/conformance.md has a row for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance.programs import POLICIES


@dataclass(frozen=True)
class Difference:
    """What ours gives for some keys of an outcome; all other keys have to be equal."""

    ours: Mapping[str, Any]
    reason: str
    policies: tuple[str, ...] = POLICIES
    sometimes: tuple[str, ...] = ()  # policies that may also be as Horovod: they choose by time


_NO_GROUPS = Difference(
    {"trained": "ValueError"},
    "this policy cuts and mixes gradients; the error names the policies that keep groups",
    policies=("least_stale",),
)

ACCEPTED: Final[dict[str, Difference]] = {
    "construction.num_groups_is_deprecated": _NO_GROUPS,
    "construction.adasum_on_a_process_set": Difference(
        {"error": "NotSupportedError"},
        "a ValueError as all refused arguments; nobody recovers from it by class",
    ),
    "reduction.number_of_groups": _NO_GROUPS,
    "reduction.listed_groups": _NO_GROUPS,
    "reduction.too_many_passes": Difference(
        {"1": "RuntimeError", "2": "RuntimeError"},
        "the error comes from compiled hooks; its message says what to do",
    ),
    "steps.zero_grad_after_backward": Difference(
        {"error": "none"},
        "gradients are thrown away on all ranks alike, so there is no race to forbid",
    ),
    "steps.zero_grad_arguments": Difference(
        {"by_name": "none", "by_position": "none"},
        "the arguments are those of torch, and Horovod's knows none",
    ),
    "steps.gradients_kept": Difference(
        {"unchanged": False},
        "p.grad is a view of the buffer that travels; clone it to keep it",
        policies=("bucket", "least_stale"),
        sometimes=("auto",),
    ),
    "steps.frozen_during_training": Difference(
        {"moved": False},
        "a frozen parameter stays where it is, as with torch on one process",
    ),
    "steps.unfrozen_during_training": Difference(
        {"replicas_equal": True},
        "what is unfrozen later is averaged too; with Horovod replicas drift apart",
    ),
    "identity.class": Difference(
        {
            "subclass": False,
            "type_name": "DistributedOptimizer",
            "repr": "DistributedOptimizer(SGD (",
        },
        "it holds the user's optimizer; isinstance() and __class__ say SGD, as with Horovod",
    ),
    "identity.class_of_the_users": Difference(
        {"trained": "ValueError"},
        "a step() of the user's own may not be run in parts; the error names other policies",
        policies=("least_stale",),
    ),
    "identity.class_with_arguments": Difference(
        {"error": "none"},
        "the user's optimizer is not made anew, so its constructor may be any",
    ),
    "identity.state_from_before_wrapping": Difference(
        {"kept": [True] * 6},
        "the user's optimizer keeps the state it has; Horovod's begins without",
    ),
    "identity.defaults": Difference(
        {"rate": 0.05},
        "the defaults are the user's; Horovod's has those of torch, a rate of 0.001",
    ),
    "identity.added_group": Difference(
        {"replicas_equal": True},
        "gradients of a group that is added are averaged; with Horovod replicas drift apart",
    ),
    "identity.pickle": Difference(
        {"error": "none"},
        "it can be pickled; Horovod's class is made on the fly and cannot",
    ),
    "identity.deepcopy": Difference(
        {"error": "none"},
        "a copy trains on; Horovod's lacks its attributes and cannot",
    ),
    "identity.step_hooks": Difference(
        {"calls": ["before", "after"] * 2},
        "a hook runs once a step, as torch says; with Horovod each runs twice",
    ),
    "broadcasts.state_after_parameters": Difference(
        {"equal": True},
        "a fresh rank gets a state without moving; with Horovod decay moves it, and it alone",
    ),
    "adasum.construction": Difference(
        {"skip": "none"},
        "step() inside does what it does outside, as there is nothing to skip",
    ),
}
