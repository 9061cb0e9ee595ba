"""How long plans may be."""

from typing import Final

# Steps. Longer cycles are not planned, so nothing may be later, or a sum of more steps, than that.
LONGEST_PERIOD: Final = 16
