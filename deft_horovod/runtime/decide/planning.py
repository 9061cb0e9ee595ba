"""From an observed step to a plan that all ranks have agreed on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch

import deft_horovod
from deft_horovod.base.parameter import Parameter, stays_exact
from deft_horovod.errors import PlanError, explain
from deft_horovod.peers import HOROVOD_VERSION, OVER_TORCH
from deft_horovod.plan import Plan
from deft_horovod.plan.file import require_fit
from deft_horovod.policies.base import Request
from deft_horovod.policies.memory import foresee
from deft_horovod.preserver.judgement import Judgement
from deft_horovod.profile import Profile
from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.decide.guard import Guard
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.named_parameters import NamedParameter, dtype_name
from deft_horovod.runtime.reduce.encoded import may_encode
from deft_horovod.runtime.reduce.merging import merging


@dataclass(frozen=True)
class Assignment:
    """Who travels how."""

    plan: Plan | None
    planned: tuple[NamedParameter, ...]
    stock: tuple[NamedParameter, ...]
    judgement: Judgement | None = None  # where a guard watches over late updates


def facts_of(members: Sequence[NamedParameter]) -> list[dict[str, Any]]:
    """What has to be equal on all ranks about the parameters."""
    return [
        {
            "name": member.name,
            "shape": list(member.tensor.shape),
            "dtype": dtype_name(member.tensor),
            "device": member.tensor.device.type,
            "trains": member.tensor.requires_grad,
        }
        for member in members
    ]


def job_facts(
    brief: Brief,
    inner: torch.optim.Optimizer,
    members: Sequence[NamedParameter],
    passes_per_step: int,
) -> dict[str, Any]:
    """What has to be equal on all ranks before anything travels."""
    return {
        "versions": {
            "deft_horovod": deft_horovod.__version__,
            "horovod": HOROVOD_VERSION,
            "torch": torch.__version__,
        },
        "policy": brief.policy.name,
        "config": brief.config.model_dump(),
        "reduction": brief.reduction.facts(),
        "backward_passes_per_step": passes_per_step,
        "merging": asdict(merging(inner, brief.config.merge, brief.correction)),
        "correction": brief.correction,
        "groups": brief.groups.of(members),
        "parameters": facts_of(members),
    }


def _plannable(brief: Brief, member: NamedParameter) -> bool:
    return (
        brief.policy.uses_executor
        and brief.reduction.plannable
        and brief.reduction.wire(dtype_name(member.tensor)) is not None
    )


def _request(brief: Brief, members: Sequence[NamedParameter], profile: Profile) -> Request:
    parameters = []
    for member in members:
        dtype = dtype_name(member.tensor)
        parameters.append(
            Parameter(
                name=member.name,
                elements=member.tensor.numel(),
                dtype=dtype,
                wire=brief.reduction.wire(dtype) or dtype,
                device=member.tensor.device.type,
                exact=not may_encode(member.tensor.device)
                or stays_exact(member.name, member.tensor.shape, brief.config.exact),
            )
        )
    if not brief.gates:
        unused = (None,) * len(profile.first_use_us)
        profile = profile.model_copy(update={"first_use_us": unused})
    return Request(
        parameters=tuple(parameters),
        profile=profile,
        config=brief.config,
        groups=brief.groups.of(members),
        limits=brief.limits,
    )


_Decision = tuple[Plan, Judgement | None]
_BETWEEN: Final = "\0"  # the texts of a decision; JSON has none


def _decide(
    brief: Brief, members: Sequence[NamedParameter], profile: Profile, guard: Guard | None
) -> _Decision:
    request = _request(brief, members, profile)
    if guard is not None:
        return guard.judge(brief.policy, request)
    if not brief.config.plan_file:
        return brief.policy.plan(request), None
    plan = Plan.load(brief.config.plan_file)
    require_fit(plan, request.parameters, brief.config.plan_file)
    return plan, None


def assign(
    agreement: Agreement,
    brief: Brief,
    observer: Observer,
    view: Callable[[Sequence[NamedParameter]], Profile],
    guard: Guard | None = None,
    upcoming: Brief | None = None,
) -> Assignment:
    """Decides on one rank, shares, verifies. All ranks call it at the same boundary.

    `view` gives the profile of the members that it is asked for; a guard judges plans that may be
    late; the plan for an upcoming phase is made meanwhile.

    A gradient that is sparse on any rank goes the stock way on all.
    """
    sparse = agreement.union(observer.sparse())
    planned = tuple(
        member
        for member, is_sparse in zip(observer.members, sparse, strict=True)
        if not is_sparse and _plannable(brief, member)
    )
    chosen = {id(member) for member in planned}
    rest = tuple(member for member in observer.members if id(member) not in chosen)
    if not planned:
        return Assignment(None, (), rest)

    def decide() -> _Decision:
        if upcoming is not None:
            request = _request(upcoming, planned, view(planned))
            foresee(upcoming.policy, guard.foreseen(request) if guard is not None else request)
        return _decide(brief, planned, view(planned), guard)

    plan, judgement = _shared(agreement, decide)
    return Assignment(plan, planned, rest, judgement)


def _travelling(plan: Plan) -> Plan:
    """Over torch.distributed messages meet by their order alone."""
    if not OVER_TORCH:
        return plan
    links = tuple(link.model_copy(update={"plan_order": True}) for link in plan.links)
    return plan.model_copy(update={"links": links})


def _shared(agreement: Agreement, decide: Callable[[], _Decision]) -> _Decision:
    """What the deciding rank decides, on all ranks."""
    both: str | None = None
    failure: Exception | None = None
    if agreement.deciding:
        try:
            plan, judgement = decide()
            said = judgement.model_dump_json() if judgement is not None else ""
            both = f"{_travelling(plan).to_json()}{_BETWEEN}{said}"
        except Exception as error:  # noqa: BLE001  # whatever it is, the others wait for an answer
            failure = error
            both = ""
    text, _, said = agreement.share(both).partition(_BETWEEN)
    if failure is not None:
        raise failure
    if not text:
        raise PlanError(
            explain(
                "the deciding rank could not make a plan",
                observed="its own error is in its log",
                action=f"look at rank {agreement.decider}",
            )
        )
    plan = Plan.from_json(text)
    agreement.require_equal({"plan": plan.hash()})
    return plan, Judgement.model_validate_json(said) if said else None
