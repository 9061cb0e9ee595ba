"""The other rank shuts Horovod down while this one hands messages over, from several threads."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time

import horovod.torch as stock
import torch

from deft_horovod.runtime.extension import native
from tests.parallel.scripts.reporting import report

THREADS = 4
ENOUGH = 100  # messages, however long a busy machine takes for them
LONG = (
    "x" * 100_000
)  # a name that Horovod is busy with between looking whether it is over and taking it
PATIENCE_S = 10.0


def hand_over(link: native.Link, tickets: list[native.Ticket], thread: int) -> None:
    """Until Horovod takes no more: nobody sends the other half of these."""
    tensor = torch.ones(4)
    for number in itertools.count():
        ticket = link.send(f"test.{thread}.{number}.{LONG}", "all_reduce", tensor, tensor)
        tickets.append(ticket)
        if number % 16 == 0 and native.horovod_has_ended():
            return


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})  # in Horovod's thread, too
    stock.init()
    processes = stock.allgather_object(os.getpid(), name="test.begin")
    if stock.rank() == 1:
        signal.sigwait({signal.SIGUSR1})
        stock.shutdown()
        report({})
        return
    link = native.HorovodLink()
    tickets: list[native.Ticket] = []
    threads = [
        threading.Thread(target=hand_over, args=(link, tickets, thread))
        for thread in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    while len(tickets) <= ENOUGH:
        time.sleep(0.001)
    os.kill(processes[1], signal.SIGUSR1)
    for thread in threads:
        thread.join()
    until_s = time.monotonic() + PATIENCE_S
    said: list[str | None] = []
    for ticket in tickets:
        try:
            said.append(ticket.wait(max(0.0, until_s - time.monotonic())))
        except RuntimeError:  # lost
            said.append(None)
    report({"sent": len(said), "lost": said.count(None), "well": said.count("")})


if __name__ == "__main__":
    main()
