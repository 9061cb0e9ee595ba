"""Limits: how stale a policy's updates may be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from deft_horovod.base.wire_format import WireFormat
from deft_horovod.config import Config
from deft_horovod.errors import ConfigError, explain
from deft_horovod.plan import Plan
from deft_horovod.policies.base import Request
from deft_horovod.solver.problem import Limits

_SYNCHRONOUS: Final = Limits(max_delay=0, max_merge=1)
# Of those that may be late at all, what they take for granted where the options say nothing. Every
# other policy is exact whatever the options say.
_TAKEN_FOR_GRANTED: Final = MappingProxyType(
    {
        "auto": _SYNCHRONOUS,
        "covap": Limits(max_delay=0, max_merge=4),
        "deft": Limits(max_delay=1, max_merge=4),
        "fewest_bytes": _SYNCHRONOUS,
        "least_stale": _SYNCHRONOUS,
        "sapipe": Limits(max_delay=1, max_merge=1),
    }
)
# Of these a share may be late as well as all, in fewer bits or not; the others' rules leave no
# choice.
_SHARING: Final = ("auto", "least_stale")
_IN_TIME: Final = ("fewest_bytes",)  # rounded, and never late
FORMATS: Final[Mapping[str | None, tuple[WireFormat, ...]]] = MappingProxyType(
    {"equal": ("f16", "int8"), "fast": ("f16", "int8", "int4")}
)


def limits(policy: str, config: Config, *, calm: bool = False) -> Limits:
    """What the options say, and what the policy takes for granted where they say nothing. `calm`:
    the learning rate has fallen so far that updates may come a step late, unless options forbid."""
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
    if config.accuracy is not None:
        _require_agreement(policy, config)
    if policy in _IN_TIME:
        return replace(_SYNCHRONOUS, formats=FORMATS.get(config.accuracy, ()))
    late = calm or config.accuracy == "fast"
    delay = 0 if config.accuracy == "exact" else max(default.max_delay, int(late))
    return Limits(
        max_delay=delay if config.max_delay is None else config.max_delay,
        max_merge=default.max_merge if config.max_merge is None else config.max_merge,
        late_share=config.late_share,
        formats=FORMATS.get(config.accuracy, ()),
    )


def _require_agreement(policy: str, config: Config) -> None:
    """The word for accuracy and the finer options must not contradict each other."""
    if not shares(policy) and policy not in _IN_TIME:
        raise ConfigError(
            explain(
                f"policy '{policy}' cannot keep to an accuracy",
                observed=f"accuracy = '{config.accuracy}'",
                expected="no accuracy, as its own rules say how late gradients are",
                action="leave accuracy out, or use policy 'auto' or 'least_stale'",
            )
        )
    late = bool(config.max_delay) or (config.max_merge or 1) > 1
    if config.accuracy == "exact" and late:
        raise ConfigError(
            explain(
                "accuracy 'exact' and late updates contradict each other",
                observed=f"max_delay = {config.max_delay}, max_merge = {config.max_merge}",
                expected="neither, or 0 and 1",
                action="leave them out, or choose accuracy 'equal' or 'fast'",
            )
        )


def narrowed(
    allowed: Limits, *, late: bool, sums: bool, without: Collection[WireFormat] = ()
) -> Limits:
    """What of it is allowed for now: updates may be late, steps may be summed. `without`: formats
    that nothing may travel in."""
    return replace(
        allowed,
        max_delay=allowed.max_delay if late else 0,
        max_merge=allowed.max_merge if sums else 1,
        formats=tuple(one for one in allowed.formats if one not in without),
    )


def limits_of(policy: str, request: Request) -> Limits:
    """What a policy keeps to. One that is exact by nature stays so."""
    if request.limits is None or policy not in _TAKEN_FOR_GRANTED:
        return limits(policy, request.config)
    return request.limits


def within(plan: Plan, allowed: Limits) -> bool:
    """Whether no update of a plan is later, or of more steps, than is allowed."""
    return all(
        generation.delay <= allowed.max_delay and generation.merged <= allowed.max_merge
        for generation in plan.generations
    )


def shares(policy: str) -> bool:
    """Whether it can delay a share of the bytes as well as all."""
    return policy in _SHARING
