"""How times of messages become tables."""

from __future__ import annotations

from typing import Any

from scripts.benchmarks.encoded import ARMS, ranks_text, slowest, spread, table


def of_rank(ms: float) -> list[dict[str, Any]]:
    """One size; every arm takes twice as long as the one before it."""
    names = (*ARMS, "all-gather")
    times = {name: [ms * 2**i, ms * 2**i + 1.0] for i, name in enumerate(names)}
    return [{"megabytes": 4.0, "times": times, "errors": dict.fromkeys(ARMS, 1e-5)}]


def test_a_message_takes_as_long_as_on_its_slowest_rank() -> None:
    first, other = of_rank(10.0), of_rank(10.0)
    first[0]["times"]["int8"] = [5.0, 100.0]
    other[0]["times"]["int8"] = [7.0, 90.0]
    found = slowest([first, other])
    assert found[0]["times"]["int8"] == [7.0, 100.0]
    assert found[0]["times"]["fp32"] == [10.0, 11.0]
    assert found[0]["megabytes"] == 4.0


def test_each_arm_has_a_row_with_its_ratio_to_fp32() -> None:
    rows = table(ranks_text(2, 1), slowest([of_rank(10.0)]))
    assert rows[0] == "\n## 2 ranks\n"
    assert rows[3] == "| 4 | fp32 | 10.5 (10.0 .. 11.0) | 1.00 (1.00 .. 1.00) | 1.0e-05 |"
    assert rows[4].startswith("| 4 | fp16 | 20.5 (20.0 .. 21.0) | 1.95 (")
    assert rows[3 + len(ARMS)] == ""


def test_what_has_no_error_is_an_exchange_of_bytes() -> None:
    rows = table(ranks_text(2, 1), slowest([of_rank(10.0)]))
    assert rows[-1].startswith("| 4 | all-gather | 2560.5 (")
    assert len(rows) == 3 + len(ARMS) + 1 + 3


def test_a_spread_is_the_median_and_its_ends() -> None:
    assert spread([3.0, 1.0, 9.0], ".0f") == "3 (1 .. 9)"


def test_a_title_says_how_many_ranks_share_the_cable_of_a_host() -> None:
    assert ranks_text(2, 4) == "8 ranks, 4 on each host"
