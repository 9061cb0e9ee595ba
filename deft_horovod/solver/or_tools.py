"""OR-Tools, loaded so that it finds its own libraries' symbols first.

Horovod loads its library, and torch with it, for the whole process to see. Both contain other
versions of libraries that OR-Tools brings along, and whichever was loaded first would win: a
crash. Import OR-Tools from here only.
"""

import os
import sys

__all__ = ["cp_model"]

_flags = sys.getdlopenflags()
sys.setdlopenflags(os.RTLD_NOW | getattr(os, "RTLD_DEEPBIND", 0))
try:
    from ortools.sat.python import cp_model
finally:
    sys.setdlopenflags(_flags)
