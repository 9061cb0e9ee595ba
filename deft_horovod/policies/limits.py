"""Limits: how stale a policy's updates may be."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from deft_horovod.config import Config
from deft_horovod.errors import ConfigError, explain
from deft_horovod.plan import Plan
from deft_horovod.solver.problem import Limits

_SYNCHRONOUS: Final = Limits(max_delay=0, max_merge=1)
# Of those that may be late at all, what they take for granted where the options say nothing. Every
# other policy is exact whatever the options say.
_TAKEN_FOR_GRANTED: Final = MappingProxyType(
    {
        "auto": _SYNCHRONOUS,
        "covap": Limits(max_delay=0, max_merge=4),
        "deft": Limits(max_delay=1, max_merge=4),
        "least_stale": _SYNCHRONOUS,
        "sapipe": Limits(max_delay=1, max_merge=1),
    }
)
# Of these a share may be late as well as all; the others' rules leave no choice.
_SHARING: Final = ("auto", "least_stale")


def limits(policy: str, config: Config) -> Limits:
    """What the options say, and what the policy takes for granted where they say nothing."""
    default = _TAKEN_FOR_GRANTED.get(policy)
    if default is None:
        return _SYNCHRONOUS
    if config.late_share < 1.0 and not shares(policy):
        raise ConfigError(
            explain(
                f"policy '{policy}' cannot limit how much is late",
                observed=f"late_share = {config.late_share:g}",
                expected="1",
                action="leave late_share out, or use policy 'least_stale'",
            )
        )
    return Limits(
        max_delay=default.max_delay if config.max_delay is None else config.max_delay,
        max_merge=default.max_merge if config.max_merge is None else config.max_merge,
        late_share=config.late_share,
    )


def narrowed(config: Config, policy: str, *, late: bool, sums: bool) -> Config:
    """The options where less is allowed for now: updates may be late, steps may be summed."""
    allowed = limits(policy, config)
    now = {
        "max_delay": allowed.max_delay if late else 0,
        "max_merge": allowed.max_merge if sums else 1,
    }
    return config.model_copy(update=now)


def within(plan: Plan, allowed: Limits) -> bool:
    """Whether no update of a plan is later, or of more steps, than is allowed."""
    return all(
        generation.delay <= allowed.max_delay and generation.merged <= allowed.max_merge
        for generation in plan.generations
    )


def shares(policy: str) -> bool:
    """Whether it can delay a share of the bytes as well as all."""
    return policy in _SHARING
