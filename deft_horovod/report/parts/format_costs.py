"""What links were measured to take in wire formats, and the codec alone."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from deft_horovod.base.wire_format import rounding_text
from deft_horovod.profile import LinkProfile
from deft_horovod.profile.format_text import codec_rate_text
from deft_horovod.report.basics.tables import Column, table
from deft_horovod.report.basics.wording import ms, rate_text


def format_costs(links: Sequence[LinkProfile]) -> Element | None:
    """None: nothing was measured in a format."""
    rows = [
        (
            link.name,
            one.format,
            rounding_text(one.format),
            ms(one.cost.alpha_us),
            rate_text(one.cost),
            codec_rate_text(one.encode_us_per_byte),
            codec_rate_text(one.decode_us_per_byte),
        )
        for link in links
        for one in link.formats
    ]
    if not rows:
        return None
    columns = [Column("link"), Column("format"), Column("rounding")]
    columns += [
        Column(title, number=True)
        for title in (
            "start of a message, ms",
            "rate of its values",
            "one core encodes",
            "and decodes",
        )
    ]
    return table("What a message costs in a wire format, encoding included", columns, rows)
