"""Arms take turns, and each gets the median of its own times."""

from __future__ import annotations

import pytest

from scripts.gpu.measure import clock


def test_who_begins_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(clock, "repeats_for", lambda *_: 1)
    monkeypatch.setattr(clock, "time_us", lambda work, *_: work())
    times = iter(range(1, 10))

    def arm(name: str) -> float:
        order.append(name)
        return float(next(times))

    arms = {name: lambda n=name: arm(n) for name in "abc"}
    found = clock.interleaved(arms, "cpu", rounds=3)
    assert "".join(order) == "abcbcacab"
    assert found["a"] == {"median": 6.0, "min": 1.0, "max": 8.0}


def test_work_is_repeated_until_it_can_be_timed() -> None:
    calls = []
    repeats = clock.repeats_for(lambda: calls.append(1), "cpu", wanted_us=50, most=40)
    assert 1 <= repeats <= 40
    assert clock.time_us(lambda: sum(range(20_000)), 2, "cpu") > 1
