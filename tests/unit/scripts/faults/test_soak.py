"""What a soak makes of the memory that its ranks have read."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.faults import soak

MB = 1_000_000


def rank(per_step_bytes: float = 0.0, **changed: Any) -> dict[str, Any]:
    samples = [(step, int(300 * MB + per_step_bytes * step)) for step in range(500, 20_001, 500)]
    seen = {"steps": 20_000, "samples": samples, "dropped": 0, "digest": "a", "late": False}
    return {**seen, "seconds": 12.0, **changed}


def test_flat_memory_is_fine() -> None:
    assert soak.trouble([rank(), rank()], 20_000) == []


def test_a_leak_of_a_kilobyte_a_step_is_found() -> None:
    assert "MB more" in soak.trouble([rank(), rank(1024)], 20_000)[0]


def test_what_is_there_now_and_then_is_no_growth() -> None:
    seen = rank()
    seen["samples"] = [(s, size + 50 * MB * (s % 1000 == 0)) for s, size in seen["samples"]]
    assert soak.growth_bytes(seen["samples"]) == 0


def test_memory_taken_in_the_beginning_does_not_count() -> None:
    seen = rank()
    seen["samples"] = [(s, size - 90 * MB * (s < soak.BEGIN)) for s, size in seen["samples"]]
    assert soak.growth_bytes(seen["samples"]) == 0


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"digest": "b"}, "differ"), ({"dropped": 2}, "dropped 2"), ({"steps": 7}, "7 steps")],
)
def test_other_troubles_are_found(changed: Any, said: str) -> None:
    assert said in soak.trouble([rank(), rank(**changed)], 20_000)[0]


def test_the_line_has_the_numbers_of_the_worse_rank() -> None:
    line = soak.line("auto", [rank(), rank(100)], 20_000)
    assert line == "| auto | 20,000 | no | 302 MB | +1.4 MB | 12 s |"
