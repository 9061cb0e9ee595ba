"""Links whose rate halves and comes back, as on a network that others use, too."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from scripts.cluster import cluster


@contextlib.contextmanager
def restless(
    rate_mbit: int, period_s: float, change: Callable[[int], None] = cluster.change_rate
) -> Iterator[None]:
    """Of the cluster that is up, every so many seconds; in the end the rate is the given one."""
    over = threading.Event()
    failures: list[Exception] = []

    def go_on() -> None:
        halved = False
        try:
            while not over.wait(period_s):
                halved = not halved
                change(max(1, rate_mbit // 2) if halved else rate_mbit)
            change(rate_mbit)
        except Exception as error:  # noqa: BLE001  it is raised where somebody waits
            failures.append(error)

    thread = threading.Thread(target=go_on, name="restless", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failures:
        raise failures[0]
