"""What was measured when policies took turns in a job. Pure."""

from deft_horovod.comparison.comparison import (
    STOCK,
    Arm,
    Comparison,
)

__all__ = [
    "STOCK",
    "Arm",
    "Comparison",
]
