"""Limits: how stale a policy's updates may be."""

from __future__ import annotations

from typing import Final

from deft_horovod.config import Config
from deft_horovod.solver.problem import Limits

_SYNCHRONOUS: Final = Limits(max_delay=0, max_merge=1)
# A policy that is late by nature is so where the options say nothing; every other has to be asked.
_TAKEN_FOR_GRANTED: Final = {"deft": Limits(max_delay=1, max_merge=4)}


def limits(policy: str, config: Config) -> Limits:
    """What the options say, and what the policy takes for granted where they say nothing."""
    default = _TAKEN_FOR_GRANTED.get(policy, _SYNCHRONOUS)
    return Limits(
        max_delay=default.max_delay if config.max_delay is None else config.max_delay,
        max_merge=default.max_merge if config.max_merge is None else config.max_merge,
    )
