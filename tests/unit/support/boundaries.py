"""Ends of steps, as followers are told of them."""

from typing import Any

from deft_horovod.runtime.reduce.installed import Boundary


def boundary(**fields: Any) -> Boundary:
    """Of a settled job with a profile, but for what is given."""
    usual = {
        "step": 1,
        "step_us": 10.0,
        "planned": None,
        "collected": None,
        "settled": True,
        "late": False,
        "profiled": True,
    }
    return Boundary(**{**usual, **fields})
