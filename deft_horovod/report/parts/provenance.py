"""Where all of it comes from, and what it does not say."""

from __future__ import annotations

from typing import Final
from xml.etree.ElementTree import Element

from deft_horovod import __version__
from deft_horovod.plan.words import many
from deft_horovod.report.basics.findings import Findings
from deft_horovod.report.basics.markup import Content, element
from deft_horovod.report.basics.wording import ms
from deft_horovod.simulate.stock import StockStep

_FUSION: Final = " Stock Horovod fuses what is ready in cycles of 1 ms, up to 128 MiB."


def provenance(findings: Findings) -> Element:
    entries = [
        part
        for title, value in facts(findings).items()
        for part in (element("dt", title), element("dd", value))
    ]
    return element(
        "section",
        element("h2", "How this was obtained"),
        element("dl", *entries, class_="facts"),
        element("ul", *(element("li", *_with_code(text)) for text in caveats(findings))),
    )


def facts(findings: Findings) -> dict[str, str]:
    inputs = findings.inputs
    profile, plan, comparison = inputs.profile, inputs.plan, inputs.comparison
    found = {"made from": inputs.source, "by": f"deft_horovod {__version__}"}
    if comparison is not None:
        found["policy asked for"] = comparison.policy
        found["policy taken"] = comparison.ours.name
    else:
        found["policy"] = findings.policy
    found |= dict(inputs.options)
    if plan is not None:
        found["plan"] = plan.hash()[:12]
        if plan.prediction is not None:
            found["solver"] = f"{plan.prediction.status}, {plan.prediction.gap:.1%} above the floor"
    found["profile"] = profile.hash()[:12]
    found["profiled"] = f"{many(profile.steps, 'step')} on {many(profile.size, 'rank')}"
    found["computing"] = (
        f"{ms(profile.compute_us)} ms a step: forward {ms(profile.forward_us)}, backward "
        f"{ms(profile.backward_us)}, optimizer {ms(profile.optimizer_us)}"
    )
    if findings.layers.coverage_rate is not None:
        found["coverage rate"] = (
            f"{findings.layers.coverage_rate:.2f}: communication over computing, layer by layer on "
            "the first link"
        )
    return found


def caveats(findings: Findings) -> list[str]:
    """What a reader has to know before anything is made of the numbers."""
    found = [
        "Times of a profile are medians of each rank, of which the largest counts.",
        "Exposed is the step less what it computes by the profile.",
    ]
    if findings.measured:
        found.append(
            "Step times were measured in the job itself, in turns; of each step the slowest rank "
            "counts. The first step of a turn fills or drains the link and is not counted."
        )
    else:
        found.append(
            "Nothing but the profile was measured. `deft-profile compare` measures stock Horovod "
            "and ours in the job itself."
        )
    if findings.inputs.profile.links:
        found.append(
            "Timelines are calculated: messages take what the fit of their link says, computing "
            f"what the profile says.{_FUSION if isinstance(findings.before, StockStep) else ''}"
        )
    plan = findings.inputs.plan
    if plan is not None and findings.after is None:
        found.append(
            "The plan carries only a part of the parameters (sparse gradients travel by Horovod's "
            "own calls), so there is no timeline of it."
        )
    return found


def _with_code(text: str) -> list[Content]:
    """What stands in backquotes is code."""
    parts = text.split("`")
    return [element("code", part) if number % 2 else part for number, part in enumerate(parts)]
