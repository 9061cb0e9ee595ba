"""The plan: what becomes of each bucket."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from deft_horovod.base.size import size_text
from deft_horovod.plan.rows import bucket_rows
from deft_horovod.plan.words import many
from deft_horovod.report.basics.findings import Findings
from deft_horovod.report.basics.markup import element
from deft_horovod.report.basics.tables import Column, table


def plan_table(findings: Findings) -> Element | None:
    """None: stock Horovod has no plan."""
    plan = findings.inputs.plan
    if plan is None or not plan.buckets:
        return None
    rows = bucket_rows(plan)
    total = size_text(sum(row.bytes for row in rows))
    text = (
        f"{many(len(plan.slots), 'parameter')} in {many(len(plan.buckets), 'bucket')}, "
        f"{many(len(plan.tasks), 'message')} a cycle of {many(plan.period, 'step')}, "
        f"{many(plan.buffers, 'buffer')} of {total}. A bucket is one message; t is the step of its "
        "last gradient."
    )
    columns = [
        Column("bucket", number=True),
        Column("size", number=True),
        Column("carries", sentence=True),
        Column("gradients of"),
        Column("how it is applied"),
        Column("when and where it rides", sentence=True),
    ]
    cells = [
        (
            str(row.bucket),
            row.size_text,
            row.carries,
            "every step" if row.alike and len(row.fates) == plan.period else fate.steps,
            fate.applied,
            ", then ".join(fate.rides),
        )
        for row in rows
        for fate in (row.fates[:1] if row.alike else row.fates)
    ]
    return element(
        "section",
        element("h2", "The plan"),
        element("p", text),
        table("The plan, bucket by bucket", columns, cells),
    )
