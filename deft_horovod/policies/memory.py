"""Plans that were made lately: the same question has the same answer, and some take seconds."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, cast

from deft_horovod.plan import Plan
from deft_horovod.policies.base import Policy, Request

_KEPT: Final = 16


class Memory:
    """Of one optimizer. Trials ask for the same few plans in every round; so does the phase after
    them. Policies are pure, so a plan holds until the request changes."""

    def __init__(self) -> None:
        self._plans: OrderedDict[tuple[str, str, str], tuple[Request, Plan]] = OrderedDict()

    def of(self, policy: Policy) -> Policy:
        """The same policy, whose plans are remembered."""
        return cast("Policy", _Remembered(policy, self))

    def plan(self, policy: Policy, request: Request) -> Plan:
        """What the policy plans."""
        key = policy.name, request.config.model_dump_json(), repr(request.limits)
        known = self._plans.pop(key, None)
        plan = known[1] if known and known[0] == request else policy.plan(request)
        self._plans[key] = request, plan
        if len(self._plans) > _KEPT:
            self._plans.popitem(last=False)
        return plan


class _Remembered:
    def __init__(self, policy: Policy, memory: Memory) -> None:
        self._policy, self._memory = policy, memory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def plan(self, request: Request) -> Plan:
        return self._memory.plan(self._policy, request)
