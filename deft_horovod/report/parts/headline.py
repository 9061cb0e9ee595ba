"""The verdict, and the figures it rests on."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from deft_horovod.comparison.text import verdict
from deft_horovod.plan.staleness import staleness
from deft_horovod.plan.staleness_text import IN_TIME, staleness_text
from deft_horovod.plan.words import many
from deft_horovod.report.basics.findings import Figures, Findings
from deft_horovod.report.basics.markup import element
from deft_horovod.report.basics.wording import capital, exposed_text, ms, rate_text


def headline_text(findings: Findings) -> str:
    """What it comes to, in a few words."""
    if findings.is_kept:
        if findings.measured or findings.inputs.profile.links:
            return f"{capital(findings.baseline)} is kept"
        return "Nothing travels on one rank" if _alone(findings) else "No link was measured"
    if findings.figures.after_us is None:
        return f"A plan of {findings.policy}"
    gain = f"{findings.figures.speedup:.2f}x as fast with {findings.policy}"
    return gain if findings.measured else f"Predicted: {gain}"


def verdict_text(findings: Findings) -> str:
    """The same in one sentence."""
    inputs, figures = findings.inputs, findings.figures
    if inputs.comparison is not None:
        return verdict(inputs.comparison)
    before = exposed_text(figures.exposed_before_us, figures.before_us)
    if not inputs.profile.links:
        return (
            f"a step computes {ms(figures.compute_us)} ms; the profile has no link, so nothing can "
            "be said of communication"
        )
    if inputs.plan is None or figures.after_us is None:
        return f"stock Horovod: step {ms(figures.before_us)} ms, of which exposed {before}"
    exposed = [
        _share(figures.exposed_before_us, figures.before_us),
        _share(figures.exposed_after_us or 0.0, figures.after_us),
    ]
    parts = [
        f"communication exposed {' -> '.join(exposed)}",
        f"step {ms(figures.before_us)} -> {ms(figures.after_us)} ms",
        f"{figures.speedup:.2f}x",
        staleness_text(inputs.plan),
    ]
    return f"predicted for {findings.policy}: {', '.join(part for part in parts if part)}"


def headline(findings: Findings) -> Element:
    """The top of the page."""
    how = "measured in the job itself" if findings.measured else "predicted from a profile"
    return element(
        "header",
        element("p", f"deft_horovod report, {how}", class_="kicker"),
        element("h1", headline_text(findings)),
        element("p", _sentence(findings), class_="verdict"),
        element("dl", *_tiles(findings), class_="tiles"),
    )


def _sentence(findings: Findings) -> str:
    """The verdict as a page has it; the name of a policy stays as it is written."""
    text = verdict_text(findings).replace(" -> ", " → ")
    return text if text.startswith(f"{findings.policy}:") else capital(text)


def _tiles(findings: Findings) -> list[Element]:
    inputs, figures = findings.inputs, findings.figures
    profile = inputs.profile
    word = "measured" if findings.measured else "predicted"
    tiles = [_tile("Step", *_step_texts(figures, word))]
    if figures.after_us is not None:
        spread = "predicted; stock Horovod is 1"
        if figures.speedups:
            low, high = min(figures.speedups), max(figures.speedups)
            spread = f"{low:.2f} .. {high:.2f} in {many(len(figures.speedups), 'round')}"
        tiles.append(_tile("Speed-up", f"{figures.speedup:.2f}x", spread))
    if profile.links or findings.measured:
        tiles.append(_tile("Exposed communication", *_exposed_texts(figures)))
    late = staleness_text(inputs.plan) if inputs.plan is not None else IN_TIME
    if profile.links:
        tiles.append(_tile("Updates", _fresh_text(findings), late))
    tiles.append(_tile("Ranks", f"{profile.size:,}", f"{many(profile.steps, 'step')} profiled"))
    for link in profile.links:
        start = f"{ms(link.cost.alpha_us)} ms to start a message"
        tiles.append(_tile(f"Link {link.name}", rate_text(link.cost), start))
    return tiles


def _tile(title: str, value: str, note: str) -> Element:
    return element(
        "div",
        element("dt", title),
        element("dd", value, class_="value"),
        element("dd", note, class_="note"),
    )


def _step_texts(figures: Figures, word: str) -> tuple[str, str]:
    note = f"{word}; computing takes {ms(figures.compute_us)} ms"
    if figures.after_us is None:
        return f"{ms(figures.before_us)} ms", note
    return f"{ms(figures.before_us)} → {ms(figures.after_us)} ms", note


def _exposed_texts(figures: Figures) -> tuple[str, str]:
    """As shares, and in milliseconds."""
    before = _share(figures.exposed_before_us, figures.before_us)
    if figures.after_us is None or figures.exposed_after_us is None:
        return before, f"{ms(figures.exposed_before_us)} ms of a step"
    after = _share(figures.exposed_after_us, figures.after_us)
    times = f"{ms(figures.exposed_before_us)} → {ms(figures.exposed_after_us)} ms of a step"
    return f"{before} → {after}", times


def _fresh_text(findings: Findings) -> str:
    """The share of the bytes that is applied in its own step."""
    plan = findings.inputs.plan
    if plan is None:
        return "100% in time"
    kinds = staleness(plan)
    total = sum(kind.bytes for kind in kinds)
    fresh = sum(kind.bytes for kind in kinds if not kind.delay and kind.merged == 1)
    return f"{fresh / total if total else 1.0:.0%} in time"


def _share(part_us: float, step_us: float) -> str:
    return f"{part_us / step_us if step_us > 0.0 else 0.0:.0%}"


def _alone(findings: Findings) -> bool:
    return findings.inputs.profile.size == 1
