"""The page: all sections."""

from __future__ import annotations

from deft_horovod.report.basics.findings import Findings
from deft_horovod.report.basics.shell import shell
from deft_horovod.report.parts.headline import headline, headline_text
from deft_horovod.report.parts.layer_chart import layer_chart
from deft_horovod.report.parts.link_fits import link_fits
from deft_horovod.report.parts.plan_table import plan_table
from deft_horovod.report.parts.provenance import provenance
from deft_horovod.report.parts.staleness_chart import staleness_chart
from deft_horovod.report.parts.step_chart import step_chart
from deft_horovod.report.parts.timelines import timelines


def page(findings: Findings) -> str:
    """The same findings make the same page."""
    sections = [
        step_chart(findings),
        timelines(findings),
        layer_chart(findings),
        staleness_chart(findings),
        link_fits(findings),
        plan_table(findings),
        provenance(findings),
    ]
    title = f"{headline_text(findings)} - deft_horovod report on {findings.inputs.source}"
    return shell(title, headline(findings), *sections)
