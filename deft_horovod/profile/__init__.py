"""What was measured, and how many measurements become one profile. Pure."""

from deft_horovod.profile.profile import (
    HOROVOD_LINK,
    MEASURED_IN_FLIGHT,
    FormatCost,
    LinkCost,
    LinkProfile,
    LinkSample,
    ModuleProfile,
    Profile,
    Spread,
    Tensor,
)

__all__ = [
    "HOROVOD_LINK",
    "MEASURED_IN_FLIGHT",
    "FormatCost",
    "LinkCost",
    "LinkProfile",
    "LinkSample",
    "ModuleProfile",
    "Profile",
    "Spread",
    "Tensor",
]
