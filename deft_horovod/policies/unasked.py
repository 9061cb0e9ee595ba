"""What `auto` may do to gradients where nobody has said it: by the class of the optimizer, as far
as training has shown that it costs nothing (docs/studies/formats/classes.md). Ours."""

from __future__ import annotations

from typing import Final

from deft_horovod.config import Config

# Classes of torch itself: of others, and of what is derived from these, nothing is known.
_EQUAL: Final = frozenset(
    {
        "torch.optim.adam.Adam",
        "torch.optim.adamw.AdamW",
        "torch.optim.Muon",
        "torch.optim._muon.Muon",  # the same, by its file
    }
)


def with_unasked_accuracy(config: Config, optimizer: type) -> Config:
    """Options as they are meant for an optimizer of this class. Whoever has asked for anything that
    bears on accuracy is taken at their word."""
    asked = (config.accuracy, config.max_delay, config.max_merge)
    if config.policy != "auto" or config.plan_file or any(one is not None for one in asked):
        return config
    if f"{optimizer.__module__}.{optimizer.__qualname__}" not in _EQUAL:
        return config
    return config.model_copy(update={"accuracy": "equal"})
