"""MachineKind: machines that are all alike, of one's own or to rent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

HOUR_S: Final = 3600
# Prices are kept in whole ten-thousandths, so that sums of money are exact.
MONEY_PARTS: Final = 10_000


@dataclass(frozen=True)
class MachineKind:
    """Own machines have no price; of rented ones `count` is how many can be had at a time."""

    name: str
    count: int
    ranks: int  # of one machine: its cores or its GPUs
    memory_bytes: int  # of one machine
    price_per_hour: float | None = None  # of one machine; None: it is one's own
    start_up_s: int = 0  # from renting to the first rank, paid for
    billed_s: int = 1  # what has begun of so many seconds is paid whole
    speed: float = 1.0  # times that of the machine of the profile

    @property
    def is_own(self) -> bool:
        return self.price_per_hour is None

    @property
    def price_parts(self) -> int:
        """Of an hour, in parts of money."""
        return round((self.price_per_hour or 0.0) * MONEY_PARTS)

    def billed_units(self, rented_s: int) -> int:
        """What is paid for a machine that was rented for so long."""
        return -(-rented_s // self.billed_s)

    def rent_parts(self, rented_s: int) -> Fraction:
        return Fraction(self.billed_units(rented_s) * self.billed_s * self.price_parts, HOUR_S)


def ranks_within(ranks: int, memory_bytes: int, rank_bytes: int) -> int:
    """For how many ranks of so much memory each there is room."""
    return min(ranks, memory_bytes // rank_bytes) if rank_bytes else ranks
