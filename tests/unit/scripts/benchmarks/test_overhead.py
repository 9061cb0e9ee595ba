"""How the overhead benchmark turns samples into verdicts."""

import pytest

from scripts.benchmarks import overhead


def raw(blocks: int, stock_s: float, ours_s: float) -> dict:
    def entry(seconds: float) -> dict:
        return {"wall": seconds, "thread": seconds, "process": seconds, "backward": seconds}

    alone_s = 0.001
    one = {"stock": entry(stock_s), "ours": entry(ours_s), "alone": entry(alone_s)}
    rank = {"free": [one] * blocks, "paused": [one] * blocks}
    return {
        "ranks": [rank, rank],
        "same_parameters": True,
        "parameter_bytes": 1,
        "messages_per_step": 1,
    }


@pytest.mark.parametrize(
    ("ours_s", "cpu", "step"), [(0.003, True, True), (0.0081, False, True), (0.012, False, False)]
)
def test_targets(ours_s: float, cpu: bool, step: bool) -> None:
    options = overhead.parse(["--blocks", "3"])
    summary = overhead.summarise(raw(3, 0.011, ours_s), options)
    assert summary["targets"] == {"cpu": cpu, "step": step}
    assert summary["cpu_thread_ms"]["stock"]["median"] == pytest.approx(10.0)
    assert summary["step_ratio"]["median"] == pytest.approx(ours_s / 0.011)
