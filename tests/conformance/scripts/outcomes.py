"""What came out of a scenario with Horovod's module and with ours: equal, or as the table says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.conformance.accepted import Difference

Outcome = Mapping[str, Any]
_NONE: Final = "(no such key)"


def differences(theirs: Any, mine: Any, where: str = "") -> list[str]:
    """Where two outcomes differ, one line for each place."""
    if isinstance(theirs, Mapping) and isinstance(mine, Mapping):
        found = []
        for key in [*theirs, *(key for key in mine if key not in theirs)]:
            place = f"{where}.{key}" if where else str(key)
            found += differences(theirs.get(key, _NONE), mine.get(key, _NONE), place)
        return found
    same = type(theirs) is type(mine) and theirs == mine
    return [] if same else [f"{where}: Horovod {theirs!r}, ours {mine!r}"]


def check(theirs: Outcome, mine: Outcome, accepted: Difference | None) -> None:
    """Equal but for what is accepted; that has to be exactly as the table says, and different.

    Raises:
        AssertionError: shows both sides of everything that is not so.
    """
    excepted = accepted.ours if accepted is not None else {}
    wrong = differences(
        {key: value for key, value in theirs.items() if key not in excepted},
        {key: value for key, value in mine.items() if key not in excepted},
    )
    for key, expected in excepted.items():
        if mine[key] != expected:
            wrong.append(f"{key}: the table says ours gives {expected!r}, it gave {mine[key]!r}")
        if theirs[key] == mine[key]:
            wrong.append(f"{key}: equal to Horovod's now, {mine[key]!r}; the table says it differs")
    assert not wrong, "\n".join(wrong)


def in_force(
    accepted: Difference | None, policy: str, theirs: Outcome, mine: Outcome
) -> Difference | None:
    """The row that applies to a policy. One that chooses by time may be as Horovod."""
    if accepted is None or policy in accepted.policies:
        return accepted
    if policy in accepted.sometimes and differences(theirs, mine):
        return accepted
    return None
