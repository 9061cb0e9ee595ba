"""Measures how fast values become messages of a wire format, and messages values, on this rank.

No link takes part: what a link takes for encoded messages has this in it, but not to be told apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Final

import torch

from deft_horovod.base.wire_format import WireFormat
from deft_horovod.profile import LinkSample
from deft_horovod.runtime.extension import native

_BYTES: Final = 4 << 20  # more than caches of a core keep, as a large message is
_ITEM_BYTES: Final = 4
_ROUNDS: Final = 5
_US: Final = 1e6

Samples = tuple[LinkSample, ...]


def codec_samples(wire_format: WireFormat) -> tuple[Samples, Samples]:
    """The time of encoding values with their rest, and of decoding their message, by the bytes that
    the values have as float32."""
    # Named: the user may have set other defaults.
    values = torch.linspace(-1.0, 1.0, _BYTES // _ITEM_BYTES, dtype=torch.float32, device="cpu")
    rest, out = torch.zeros_like(values), torch.zeros_like(values)
    message = native.wire_encode(wire_format, values)
    encode = partial(native.wire_encode, wire_format, values, rest, out=message)
    decode = partial(native.wire_decode, wire_format, message, len(values), out=out)
    return _samples(encode), _samples(decode)


def _samples(call: Callable[[], object]) -> Samples:
    call()  # brings memory and caches to where they stay
    times_us = []
    for _ in range(_ROUNDS):
        began_s = time.perf_counter()
        call()
        times_us.append((time.perf_counter() - began_s) * _US)
    return (LinkSample(size_bytes=_BYTES, time_us=median(times_us)),)
