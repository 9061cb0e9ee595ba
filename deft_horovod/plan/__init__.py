"""The Plan and all that is known from a plan alone. Pure."""

from deft_horovod.plan.plan import (
    Arena,
    Bucket,
    FirstStep,
    Generation,
    Link,
    Op,
    Plan,
    Prediction,
    Slot,
    Stage,
    Staleness,
    Step,
    Task,
)

__all__ = [
    "Arena",
    "Bucket",
    "FirstStep",
    "Generation",
    "Link",
    "Op",
    "Plan",
    "Prediction",
    "Slot",
    "Stage",
    "Staleness",
    "Step",
    "Task",
]
