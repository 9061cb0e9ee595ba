"""What was measured when policies took turns in a job. Pure."""

from deft_horovod.comparison.comparison import (
    BASELINES,
    DDP,
    STOCK,
    Arm,
    Comparison,
)

__all__ = [
    "BASELINES",
    "DDP",
    "STOCK",
    "Arm",
    "Comparison",
]
