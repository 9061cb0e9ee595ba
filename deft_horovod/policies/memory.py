"""Plans that were made lately: the same question has the same answer, and some take seconds."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, cast

from deft_horovod.plan import Plan
from deft_horovod.policies.ahead import PlansAhead
from deft_horovod.policies.base import Policy, Request

_KEPT: Final = 16


class Memory:
    """Of one optimizer. Trials ask for the same few plans in every round; so does the phase after
    them. Policies are pure, so a plan holds until the request changes."""

    def __init__(self) -> None:
        self.ahead = PlansAhead()
        self._plans: OrderedDict[tuple[str, str, str], tuple[Request, Plan]] = OrderedDict()

    def of(self, policy: Policy) -> Policy:
        """The same policy, whose plans are remembered."""
        return cast("Policy", _Remembered(policy, self))

    def plan(self, policy: Policy, request: Request) -> Plan:
        """What the policy plans."""
        plan = self._known(policy, request) or self.ahead.take(policy.name, request)
        if plan is None:
            plan = policy.plan(request)
        key = _key(policy, request)
        self._plans[key] = request, plan
        self._plans.move_to_end(key)
        if len(self._plans) > _KEPT:
            self._plans.popitem(last=False)
        return plan

    def foresee(self, policy: Policy, request: Request) -> None:
        """The plan will be wanted soon."""
        if self._known(policy, request) is None:
            self.ahead.ask(policy.name, request)

    def _known(self, policy: Policy, request: Request) -> Plan | None:
        known = self._plans.get(_key(policy, request))
        return known[1] if known is not None and known[0] == request else None


def foresee(policy: Policy, request: Request) -> None:
    """This will be asked soon, if the policy is one that remembers."""
    if isinstance(policy, _Remembered):
        policy.foresee(request)


def _key(policy: Policy, request: Request) -> tuple[str, str, str]:
    return policy.name, request.config.model_dump_json(), repr(request.limits)


class _Remembered:
    def __init__(self, policy: Policy, memory: Memory) -> None:
        self._policy, self._memory = policy, memory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def plan(self, request: Request) -> Plan:
        return self._memory.plan(self._policy, request)

    def foresee(self, request: Request) -> None:
        self._memory.foresee(self._policy, request)
