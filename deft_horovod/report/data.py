"""What is behind the page, for a program."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from deft_horovod.plan.rows import bucket_rows
from deft_horovod.report.basics.findings import Findings
from deft_horovod.report.parts.headline import headline_text, verdict_text
from deft_horovod.report.parts.link_fits import residuals
from deft_horovod.report.parts.provenance import caveats, facts
from deft_horovod.report.parts.staleness_chart import shares
from deft_horovod.report.parts.step_chart import step_rows
from deft_horovod.report.parts.timelines import pictures


def report_data(findings: Findings) -> dict[str, Any]:
    """Times in microseconds, of the timelines since their beginning."""
    profile, plan, figures = findings.inputs.profile, findings.inputs.plan, findings.figures
    return {
        "headline": headline_text(findings),
        "verdict": verdict_text(findings),
        "measured": findings.measured,
        "policy": findings.policy,
        "ranks": profile.size,
        "compute_us": figures.compute_us,
        "before_us": figures.before_us,
        "after_us": figures.after_us,
        "floor_us": findings.floor_us,
        "exposed_before_us": figures.exposed_before_us,
        "exposed_after_us": figures.exposed_after_us,
        "speedup": figures.speedup,
        "speedups": list(figures.speedups),
        "steps": [asdict(row) for row in step_rows(findings)],
        "timelines": [asdict(picture) for picture in pictures(findings)],
        **findings.layers.to_data(),
        "staleness": [
            {**kind.model_dump(mode="json"), "share": share}
            for kind, share in (shares(plan) if plan is not None else [])
        ],
        "links": [
            {**link.model_dump(mode="json"), "residuals": residuals(link)} for link in profile.links
        ],
        "buckets": [asdict(row) for row in bucket_rows(plan)] if plan is not None else [],
        "facts": facts(findings),
        "caveats": caveats(findings),
    }
