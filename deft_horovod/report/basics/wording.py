"""Numbers as a page shows them."""

from __future__ import annotations

from deft_horovod.profile import LinkCost


def ms(time_us: float) -> str:
    """Milliseconds, with as many digits as mean something."""
    return _rounded(time_us / 1000)


def exposed_text(exposed_us: float, step_us: float) -> str:
    share = exposed_us / step_us if step_us > 0.0 else 0.0
    return f"{ms(exposed_us)} ms ({share:.0%})"


def rate_text(cost: LinkCost) -> str:
    """Of gradients that are reduced: bytes over microseconds are megabytes over seconds."""
    if cost.beta_us_per_byte <= 0.0:
        return "no limit seen"
    return f"{_rounded(1.0 / cost.beta_us_per_byte)} MB/s"


def capital(text: str) -> str:
    """As the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def short(name: str, most: int = 20) -> str:
    """A name where there is no second line to go to."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _rounded(value: float) -> str:
    digits = next((n for n, least in ((1, 10.0), (2, 1.0)) if abs(value) >= least), 3)
    return f"{value:,.{digits}f}" if value else "0"
