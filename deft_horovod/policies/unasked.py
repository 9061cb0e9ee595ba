"""What `auto` may do to gradients where nobody has said it: by the class of the optimizer, as far
as training has shown that it costs nothing (docs/studies/formats/classes.md). Ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from deft_horovod.config import Config

# Classes of torch itself: of others, and of what is derived from these, nothing is known.
_SGD: Final = "torch.optim.sgd.SGD"  # without momentum it was not tested
_EQUAL: Final = frozenset(
    {
        _SGD,
        "torch.optim.adam.Adam",
        "torch.optim.adamw.AdamW",
        "torch.optim.Muon",
        "torch.optim._muon.Muon",  # the same, by its file
    }
)


def with_unasked_accuracy(
    config: Config, optimizer: type, groups: Iterable[Mapping[str, object]]
) -> Config:
    """Options as they are meant for an optimizer of this class with these groups of parameters.
    Whoever has asked for anything that bears on accuracy is taken at their word."""
    asked = _asked(config, config.accuracy, config.max_delay, config.max_merge)
    name = f"{optimizer.__module__}.{optimizer.__qualname__}"
    tested = name in _EQUAL and (name != _SGD or all(group["momentum"] for group in groups))
    if asked or not tested:
        return config
    return config.model_copy(update={"accuracy": "equal"})


def in_time_unless_asked(asked: Config, meant: Config) -> Config:
    """What is meant by these options where nothing may come late of itself. That steps may travel
    as one sum says nothing about it."""
    if _asked(asked, asked.accuracy, asked.max_delay):
        return meant
    return meant.model_copy(update={"max_delay": 0})


def _asked(config: Config, *words: object) -> bool:
    """Whether any of these words was said, or `auto` has no say."""
    decided = config.policy != "auto" or bool(config.plan_file)
    return decided or any(word is not None for word in words)
