"""How far the clocks of the ranks are apart, so that their traces can lie side by side."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from deft_horovod.runtime.extension import native
from deft_horovod.runtime.ranks.agreement import Agreement

_ROUNDS: Final = 21
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class ClockOffset(NamedTuple):
    """What to add to this rank's clock to have that of the lowest rank."""

    us: float
    error_us: float  # half of the rounds agree within this


def clock_offset(agreement: Agreement) -> ClockOffset:
    """All ranks ask together. Ranks of one machine share its clock; between machines, what all
    ranks have waited for together is over everywhere at about the same time."""
    boots = agreement.collect(_BOOT.read_text(encoding="ascii") if _BOOT.is_file() else "")
    if len(set(boots)) == 1 and boots[0]:
        return ClockOffset(0.0, 0.0)
    rows = agreement.gather([float(agreement.rank)])
    mine = [int(row[0]) for row in rows].index(agreement.rank)
    over_us = 0.0
    differences = []
    for past in range(_ROUNDS + 1):
        told = agreement.gather([over_us])  # when the round before was over, on each rank
        over_us = float(native.steady_us())
        if past:
            differences.append(told[0][0] - told[mine][0])
    low, high = np.quantile(differences, (0.25, 0.75))
    return ClockOffset(median(differences), float(high - low) / 2)
