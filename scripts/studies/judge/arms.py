"""Ways in which gradients may travel, from harmless to harmful."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from deft_horovod.base.wire_format import EXACT, WireFormat
from scripts.studies.convergence.lateness import Arm as Late

_IN_TIME: Final = Late()
_LOW: Final = 0.75  # of the highest learning rate, where `auto` would begin with late updates


@dataclass(frozen=True)
class Arm:
    format: WireFormat = EXACT  # of everything that may be rounded
    feedback: bool = True
    late: Late = _IN_TIME
    apart: bool = False  # what is late is not rounded
    reversed: bool = False  # sums of gradients in the other order: as good as exact

    @property
    def rounds(self) -> bool:
        return self.format != EXACT


EXACT_ARM: Final = "exact"
NULL: Final = "reversed sums"
_ALL: Final = Late(-1, correction="local")
_FROM_LOW: Final = Late(-1, correction="local", below=_LOW)
# `late.late`: how many of a task's parts, -1 for all.
ARMS: Final = MappingProxyType(
    {
        EXACT_ARM: Arm(),
        NULL: Arm(reversed=True),
        "int8": Arm("int8"),
        "int4": Arm("int4"),
        "int8, no feedback": Arm("int8", feedback=False),
        "int4, no feedback": Arm("int4", feedback=False),
        "late": Arm(late=_ALL),
        "late, uncorrected": Arm(late=Late(-1)),
        "first layer late": Arm(late=Late(1, correction="local")),
        "late by two": Arm(late=Late(-1, 2, correction="local")),
        "merged by four": Arm(late=Late(-1, 1, 4, "local", partial=True)),
        f"late below {_LOW:g}": Arm(late=_FROM_LOW),
        f"int8, late below {_LOW:g}": Arm("int8", late=_FROM_LOW),
        "half late, the rest int4": Arm("int4", late=Late(2, correction="local"), apart=True),
    }
)
# What the product does where it may, and did of itself when this was asked.
IN_USE: Final = ("int8", "int4", "late", f"late below {_LOW:g}", f"int8, late below {_LOW:g}")
