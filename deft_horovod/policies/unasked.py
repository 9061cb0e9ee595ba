"""What may be done to gradients by the class of the optimizer: what `auto` may do where nobody has
said it, as far as training has shown that it costs nothing (docs/studies/formats/classes.md), and
what `fast` may not, as training has shown that it costs much (docs/studies/judge/README.md). Ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from deft_horovod.base.wire_format import WireFormat
from deft_horovod.config import Config

# Classes of torch itself: of others, and of what is derived from these, nothing is known.
_SGD: Final = "torch.optim.sgd.SGD"  # without momentum it was not tested
_MUON: Final = frozenset({"torch.optim.Muon", "torch.optim._muon.Muon"})  # the same, by its file
_EQUAL: Final = frozenset({_SGD, "torch.optim.adam.Adam", "torch.optim.adamw.AdamW", *_MUON})


def with_unasked_accuracy(
    config: Config, optimizer: type, groups: Iterable[Mapping[str, object]]
) -> Config:
    """Options as they are meant for an optimizer of this class with these groups of parameters.
    Whoever has asked for anything that bears on accuracy is taken at their word."""
    words = config.accuracy, config.max_delay, config.max_merge
    decided = config.policy != "auto" or bool(config.plan_file)
    asked = decided or any(word is not None for word in words)
    name = _name(optimizer)
    tested = name in _EQUAL and (name != _SGD or all(group["momentum"] for group in groups))
    if asked or not tested:
        return config
    return config.model_copy(update={"accuracy": "equal"})


def formats_that_harm(optimizer: type) -> tuple[WireFormat, ...]:
    """Those that nothing travels in with an optimizer of this class, whatever is asked for."""
    return ("int4",) if _name(optimizer) in _MUON else ()


def _name(optimizer: type) -> str:
    return f"{optimizer.__module__}.{optimizer.__qualname__}"
