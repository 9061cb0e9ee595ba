"""The policies, by name. One file per policy."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from deft_horovod.errors import ConfigError, explain
from deft_horovod.policies.auto import Auto
from deft_horovod.policies.base import Parameter, Policy, Request
from deft_horovod.policies.bucket import Bucketed
from deft_horovod.policies.deft import Deft
from deft_horovod.policies.fewest_bytes import FewestBytes
from deft_horovod.policies.least_stale import LeastStale
from deft_horovod.policies.priority import Priority
from deft_horovod.policies.published.bytescheduler import ByteScheduler
from deft_horovod.policies.published.covap import Covap
from deft_horovod.policies.published.dcredit import DCredit
from deft_horovod.policies.published.ddp import Ddp
from deft_horovod.policies.published.dear import Dear
from deft_horovod.policies.published.mgwfbp import MgWfbp
from deft_horovod.policies.published.p3 import P3
from deft_horovod.policies.published.sapipe import SaPipe
from deft_horovod.policies.published.usbyte import UsByte
from deft_horovod.policies.published.wfbp import Wfbp
from deft_horovod.policies.stock import Stock

__all__ = ["Parameter", "Policy", "Request", "get", "registry"]


def registry() -> Mapping[str, Policy]:
    policies: tuple[Policy, ...] = (
        Auto(),
        Bucketed(),
        ByteScheduler(),
        Covap(),
        DCredit(),
        Ddp(),
        Dear(),
        Deft(),
        FewestBytes(),
        LeastStale(),
        MgWfbp(),
        P3(),
        Priority(),
        SaPipe(),
        Stock(),
        UsByte(),
        Wfbp(),
    )
    return MappingProxyType({policy.name: policy for policy in policies})


def get(name: str) -> Policy:
    known = registry()
    if name in known:
        return known[name]
    close = get_close_matches(name, known, n=1)
    raise ConfigError(
        explain(
            "there is no policy of this name",
            observed=repr(name),
            expected=", ".join(known),
            action=f"did you mean '{close[0]}'?" if close else "choose one of these",
        )
    )
