"""Slow links for real computing: their rate, and what is said of the result."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.gpu.measure import links


def test_rate_carries_all_gradients_in_the_computing_time() -> None:
    size = 100_000_000
    rate = links.rate_mbit(size, 0.25)
    # The same relation that the benchmarks on sleeping models use, the other way round.
    back = links.workloads.gradient_bytes(links.HOSTS, rate, 1.0, 0.25)
    assert back == pytest.approx(size, rel=0.001)
    assert links.rate_mbit(size, 1e-6) == links.HIGHEST_MBIT
    assert links.rate_mbit(1, 10.0) == links.LOWEST_MBIT


def test_without_namespaces_it_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: Any) -> None:
        raise links.cluster.ClusterError("network namespaces need root")

    monkeypatch.setattr(links, "measure", refuse)
    monkeypatch.setattr("sys.argv", ["links.py", "--device", "cpu"])
    monkeypatch.setattr(links.jobs, "exit_on_sigterm", lambda: None)
    with pytest.raises(SystemExit) as left:
        links.main()
    assert left.value.code == 77
    assert "no emulated hosts here: network namespaces need root" in capsys.readouterr().out


def test_headline_gives_all_sides() -> None:
    steps_ms = {
        "stock": [400.0, 410.0, 420.0],
        "fp16": [360.0, 369.0, 378.0],
        "ours": [300.0, 307.5, 315.0],
    }
    found = {"rate_mbit": 3000, "compute_ms": 250.0, "steps_ms": steps_ms}
    assert links.headline(found, "gpt2") == (
        "gpt2, 2 emulated hosts of 3000 Mbit/s sharing a device: computing 250 ms, "
        "stock Horovod 410 ms, in fp16 369 ms, ours 308 ms: 1.33 times stock, 1.20 times fp16"
    )
