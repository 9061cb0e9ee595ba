"""What a policy is: a rule that turns parameters and measurements into a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.errors import NotSupportedError, PlanError, explain
from deft_horovod.plan import Bucket, Generation, Link, Plan, Slot, Task
from deft_horovod.plan.contents import contents
from deft_horovod.profile import HOROVOD_LINK, Profile
from deft_horovod.solver.messages.layout import Layout
from deft_horovod.solver.problem import Limits

__all__ = [
    "Defaults",
    "Parameter",
    "Policy",
    "Request",
    "complete_order",
    "plan_as_ready",
    "refuse_groups",
]

_UNORDERED: Final = Link(name=HOROVOD_LINK, plan_order=False)


@dataclass(frozen=True)
class Request:
    """Everything a policy may look at."""

    parameters: tuple[Parameter, ...]
    profile: Profile
    config: Config
    # Parameters that the user wants reduced together, by index; each in at most one group.
    groups: tuple[tuple[int, ...], ...] = ()
    limits: Limits | None = None  # for now; None: as the options say

    def __post_init__(self) -> None:
        count = len(self.parameters)
        if len(self.profile.ready_order) != count:
            raise PlanError(
                explain(
                    "a profile does not fit the parameters",
                    observed=f"a profile of {len(self.profile.ready_order)} parameters",
                    expected=f"{count} parameters",
                    action="profile this model anew",
                )
            )
        members = [index for group in self.groups for index in group]
        if len(set(members)) != len(members) or any(not 0 <= i < count for i in members):
            raise NotSupportedError(
                explain(
                    "the groups of parameters are not well formed",
                    observed=f"members {sorted(members)[:20]}",
                    expected=f"indices within 0 .. {count - 1}, each in at most one group",
                    action="list each parameter in one group only",
                )
            )


class Policy(Protocol):
    """A scheduler. Pure: the same request gives the same plan on every machine."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str:
        """One line for a person."""

    @property
    def supports_groups(self) -> bool: ...

    @property
    def gates(self) -> bool:
        """Whether its plans may be gated, so that forward has to be watched."""

    @property
    def replan_after_steps(self) -> int | None:
        """Plan again after so many steps, with what they measured. None: the first plan stays."""

    @property
    def uses_executor(self) -> bool:
        """False: everything goes through Horovod's own optimizer, and the plan is empty."""

    @property
    def measures(self) -> bool:
        """Whether it plans from a whole profile, so that some steps have to be measured first."""

    @property
    def splits(self) -> bool:
        """Whether its messages are reduce-scatters and all-gathers, so that these have to be
        measured too."""

    @property
    def correction(self) -> str:
        """What is done about late updates, if the options leave it open; see `Config`."""

    def plan(self, request: Request) -> Plan: ...


class Defaults:
    """What a policy is like as far as it does not say otherwise."""

    supports_groups: bool = False
    gates: bool = False
    replan_after_steps: int | None = None
    uses_executor: bool = True
    measures: bool = False
    splits: bool = False
    correction: str = "local"


def refuse_groups(policy: Policy, request: Request) -> None:
    if request.groups:
        raise NotSupportedError(
            explain(
                f"policy '{policy.name}' cannot keep groups of gradients together",
                observed=f"{len(request.groups)} groups",
                expected="no groups",
                action="leave groups (or num_groups) out, or use policy 'bucket' or 'stock'",
            )
        )


def complete_order(
    slots: Sequence[Slot], buckets: Sequence[Bucket], order: Sequence[int]
) -> list[int]:
    """The buckets in the order in which they are complete, if gradients come in `order`."""
    position = {index: place for place, index in enumerate(order)}
    last = [max(position[slot] for slot in members) for members in contents(slots, buckets)]
    return sorted(range(len(buckets)), key=lambda bucket: (last[bucket], bucket))


def plan_as_ready(
    policy: str,
    layout: Layout,
    buckets: tuple[Bucket, ...],
    order: Sequence[int],
    link: Link = _UNORDERED,
) -> Plan:
    """A synchronous plan in which every bucket leaves as soon as it is complete.

    Without another link nothing limits what is in flight, so a gradient that comes late, or on one
    rank only at the end of backward, holds up no other; Horovod agrees on the order by itself.
    """
    return Plan(
        policy=policy,
        links=(link,),
        arenas=layout.arenas,
        slots=layout.slots,
        buckets=buckets,
        generations=tuple(Generation(bucket=index) for index in range(len(buckets))),
        tasks=tuple(
            Task(generation=index) for index in complete_order(layout.slots, buckets, order)
        ),
    )
