"""The names of policies. Their registry stands above the configuration, which has to know them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

POLICIES: Final = (
    "auto",
    "bucket",
    "bytescheduler",
    "covap",
    "dcredit",
    "ddp",
    "dear",
    "deft",
    "fewest_bytes",
    "least_stale",
    "mgwfbp",
    "p3",
    "priority",
    "sapipe",
    "stock",
    "usbyte",
    "wfbp",
)


def known_policy(name: str) -> str:
    """The same name.

    Raises:
        ValueError: there is no such policy.
    """
    if name not in POLICIES:
        close = get_close_matches(name, POLICIES, n=1)
        raise ValueError("no such policy" + (f"; did you mean '{close[0]}'?" if close else ""))
    return name
