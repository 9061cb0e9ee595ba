"""Runs of equal messages of scratch memory over one link, timed."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Final, Protocol

import horovod.torch as stock
import torch

from deft_horovod.errors import WaitTimeoutError, explain

_US: Final = 1e6
_SLICE_S: Final = 0.1  # between two looks for signals
_ITEM_BYTES: Final = 4
_LARGEST_BYTES: Final = 64 << 20
_HOST: Final = torch.device("cpu")


class Ticket(Protocol):
    """A message on its way."""

    def wait(self, timeout_s: float) -> str:
        """Empty, or why it failed; raises when the time is over."""


class Link(Protocol):
    """Whatever carries messages between the ranks."""

    def send(
        self,
        name: str,
        op: str,
        input: torch.Tensor,  # noqa: A002
        output: torch.Tensor,
    ) -> Any:
        """Hands a message over and returns its :class:`Ticket`."""


@dataclass(frozen=True)
class Allowance:
    """How much measuring a link may take."""

    budget_s: float = 2.0
    deadline_s: float = 300.0  # for one message
    largest_bytes: int = _LARGEST_BYTES
    in_flight: int = 2
    device: torch.device = _HOST


class MessageStream:
    """Sends and waits, a few messages in flight; each size has names of its own."""

    def __init__(self, link: Link, name: str, allowance: Allowance) -> None:
        self._link = link
        self._name = name
        self._allowance = allowance
        self._scratch: list[torch.Tensor] = []
        self._stopped = False

    def stop(self) -> None:
        """Whoever waits on another thread gives up."""
        self._stopped = True

    def reserve(self, size_bytes: int) -> None:
        """Memory for messages up to this size, there and zero before the first one leaves."""
        if self._scratch and self._scratch[0].numel() * _ITEM_BYTES >= size_bytes:
            return
        self._scratch = [
            torch.zeros(size_bytes // _ITEM_BYTES, device=self._allowance.device)
            for _ in range(self._allowance.in_flight)
        ]
        if self._allowance.device.type == "cuda":
            torch.cuda.synchronize(self._allowance.device)

    def run_us(self, size_bytes: int, messages: int) -> float:
        """The time for each of some equal messages."""
        waiting: deque[tuple[str, Ticket]] = deque()
        began_s = time.perf_counter()
        for number in range(messages):
            if len(waiting) == self._allowance.in_flight:
                self._wait(*waiting.popleft())
            place = number % self._allowance.in_flight
            name = f"{self._name}.{size_bytes}.{place}"
            buffer = self._scratch[place][: size_bytes // _ITEM_BYTES]
            waiting.append((name, self._link.send(name, "all_reduce", buffer, buffer)))
        while waiting:
            self._wait(*waiting.popleft())
        return (time.perf_counter() - began_s) * _US / messages

    def _wait(self, name: str, ticket: Ticket) -> None:
        ends_s = time.monotonic() + self._allowance.deadline_s
        while True:
            try:
                failure = ticket.wait(_SLICE_S)
            except (RuntimeError, TimeoutError):
                if time.monotonic() < ends_s and not self._stopped:
                    continue
                raise WaitTimeoutError(self._late(name)) from None
            if failure:
                raise stock.HorovodInternalError(failure)
            return

    def _late(self, name: str) -> str:
        return explain(
            f"a link could not be measured: message '{name}' did not arrive",
            rank=stock.rank(),
            observed=f"nothing within {self._allowance.deadline_s:g} s",
            expected="every rank sends it at the same boundary",
            action="look for the first rank that failed or is much slower; DEFT_DEADLINE_S "
            "changes the deadline",
        )
