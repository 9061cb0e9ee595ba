"""CPU time goes to whoever started the thread that took it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from scripts.benchmarks.real_models.thread_times import KERNEL, ThreadTimes, between, read


def burn(seconds: float) -> None:
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        sum(range(50_000))  # asking for the time takes the kernel's


def test_a_thread_belongs_to_what_was_being_started() -> None:
    times, stop = ThreadTimes(), threading.Event()
    times.started("computing")
    go = threading.Event()
    worker = threading.Thread(target=lambda: (go.wait(), burn(0.2), stop.wait()), daemon=True)
    worker.start()
    times.started("ours")
    before = times.now()
    go.set()
    until_s = time.monotonic() + 30
    while (
        times.now().get("ours", 0.0) < before.get("ours", 0.0) + 150 and time.monotonic() < until_s
    ):
        time.sleep(0.01)
    spent = between(before, times.now())
    stop.set()
    worker.join()
    assert spent["ours"] >= 150
    assert spent["computing"] < spent["ours"]


def test_names_of_threads_may_hold_anything(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    numbers = ["0"] * 11 + ["300", "200"] + ["0"] * 20
    (tmp_path / "7" / "stat").write_text(f"7 (a) b) {' '.join(numbers)}\n")
    (tmp_path / "8").mkdir()  # has ended since
    (user_ms, system_ms) = read(tmp_path)[7]
    assert user_ms == 1.5 * system_ms > 0
    assert list(read(tmp_path)) == [7]


def test_what_ended_takes_no_time_back() -> None:
    assert between({KERNEL: 5.0, "ours": 9.0}, {KERNEL: 7.0, "ours": 1.0}) == {
        KERNEL: 2.0,
        "ours": 0.0,
    }
