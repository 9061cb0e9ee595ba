"""Runs of equal messages of scratch memory over one link, timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import torch

from deft_horovod.errors import WaitTimeoutError, explain
from deft_horovod.peers import stock
from deft_horovod.plan import Op
from deft_horovod.profile import MEASURED_IN_FLIGHT

_US: Final = 1e6
_SLICE_S: Final = 0.1  # between two looks for signals
_ITEM_BYTES: Final = 4
_LARGEST_BYTES: Final = 64 << 20
_HOST: Final = torch.device("cpu")


class Ticket(Protocol):
    """Messages on their way."""

    def wait(self, timeout_s: float) -> str:
        """Empty, or why one failed; raises when the time is over."""


class MessageRunner(Protocol):
    """Whatever carries messages between the ranks."""

    def run(
        self,
        names: Sequence[str],
        op: str,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        messages: int,
    ) -> Ticket:
        """Sends so many messages. As many are in flight as there are names, which take turns."""


@dataclass(frozen=True)
class Allowance:
    """How much measuring a link may take."""

    budget_s: float = 2.0
    deadline_s: float = 300.0  # for one message
    largest_bytes: int = _LARGEST_BYTES
    in_flight: int = MEASURED_IN_FLIGHT
    rank: int = 0  # of `size`, for messages of which every rank has a part
    size: int = 1
    device: torch.device = _HOST


def names_of(stream: str, size_bytes: int, count: int) -> list[str]:
    """Of a stream's messages of this size that are in flight together."""
    return [f"{stream}.{size_bytes}.{place}" for place in range(count)]


class MessageStream:
    """Sends and waits, a few messages in flight; each size has names of its own."""

    def __init__(
        self, link: MessageRunner, name: str, allowance: Allowance, op: Op = "all_reduce"
    ) -> None:
        self._link = link
        self._op = op
        self._name = name
        self._allowance = allowance
        self._scratch: list[torch.Tensor] = []
        self._stopped = False

    def stop(self) -> None:
        """A wait in another thread gives up."""
        self._stopped = True

    def reserve(self, size_bytes: int) -> None:
        """Memory for messages up to this size, there and zero before the first one leaves."""
        if self._scratch and self._scratch[0].numel() * _ITEM_BYTES >= size_bytes:
            return
        self._scratch = [
            torch.zeros(
                size_bytes // _ITEM_BYTES, dtype=torch.float32, device=self._allowance.device
            )
            for _ in range(self._allowance.in_flight)
        ]
        if self._allowance.device.type == "cuda":
            torch.cuda.synchronize(self._allowance.device)

    def run_us(self, size_bytes: int, messages: int, *, alone: bool = False) -> float:
        """The time for each of some equal messages. `alone`: one is in flight at a time."""
        in_flight = min(1 if alone else self._allowance.in_flight, messages)
        names = names_of(self._name, size_bytes, in_flight)
        ends = [
            self._ends(memory[: size_bytes // _ITEM_BYTES]) for memory in self._scratch[:in_flight]
        ]
        inputs, outputs = zip(*ends, strict=True)
        began_s = time.perf_counter()
        self._wait(names[0], self._link.run(names, self._op, inputs, outputs, messages))
        return (time.perf_counter() - began_s) * _US / messages

    def _ends(self, buffer: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Input and output. Where they do not come out even the first ranks have one more."""
        if self._op == "all_reduce":
            return buffer, buffer
        base, rest = divmod(buffer.numel(), self._allowance.size)
        rank = self._allowance.rank
        begin = base * rank + min(rank, rest)
        own = buffer[begin : begin + base + (rank < rest)]
        return (buffer, own) if self._op == "reduce_scatter" else (own, buffer)

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
            f"a link could not be measured: messages such as '{name}' did not arrive",
            rank=stock.rank(),
            observed=f"nothing within {self._allowance.deadline_s:g} s",
            expected="every rank sends it at the same boundary",
            action="look for the first rank that failed or is much slower; DEFT_DEADLINE_S "
            "changes the deadline",
        )
