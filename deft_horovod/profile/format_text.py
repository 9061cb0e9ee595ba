"""What a wire format costs on a link, in words."""

from __future__ import annotations

from deft_horovod.profile.profile import FormatCost


def format_text(link: str, one: FormatCost) -> str:
    """One line for people."""
    beta_us = one.cost.beta_us_per_byte
    rate = f" + {1.0 / beta_us:.4g} MB/s of values" if beta_us > 0.0 else ""
    text = f"link '{link}' in {one.format}: {one.cost.alpha_us:.0f} us a message{rate}"
    encoding = codec_rate_text(one.encode_us_per_byte)
    decoding = codec_rate_text(one.decode_us_per_byte)
    if not (encoding and decoding):
        return text
    return f"{text}; one core encodes {encoding} and decodes {decoding}"


def codec_rate_text(us_per_byte: float | None) -> str:
    """Of values as float32; empty: not measured."""
    return f"{1e-3 / us_per_byte:.3g} GB/s" if us_per_byte else ""
