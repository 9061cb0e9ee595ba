"""CP-SAT, loaded so that it works in a process that has loaded Horovod.

Horovod opens its library with RTLD_GLOBAL, which makes all symbols of torch's libraries global.
Those that OR-Tools' libraries define too (Abseil's) are then taken from there, and the process
crashes while OR-Tools is loaded. With RTLD_DEEPBIND its libraries look at their own symbols first.
"""

from __future__ import annotations

import os
import sys
from typing import Final

_DEEPBIND: Final[int] = getattr(os, "RTLD_DEEPBIND", 0)  # Linux with glibc
_flags: Final = sys.getdlopenflags()
sys.setdlopenflags(os.RTLD_NOW | _DEEPBIND)
try:
    from ortools.sat.python import cp_model
finally:
    sys.setdlopenflags(_flags)

__all__ = ["cp_model"]
