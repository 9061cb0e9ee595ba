"""What ``stats()`` says about steps and links."""

from __future__ import annotations

from typing import Any

from deft_horovod.plan.formats_text import bytes_by_format
from deft_horovod.preserver.rounding import by_format
from deft_horovod.runtime.measure.step_clock import StepClock
from deft_horovod.runtime.reduce.planned import PlannedReducer


def step_stats(clock: StepClock, planned: PlannedReducer | None) -> dict[str, Any]:
    """All that ``stats()`` says about steps and links; docs/reference/metrics.md explains it."""
    stats: dict[str, Any] = {
        "steps": clock.steps,
        **clock.medians(),
        "plan": None,
        "late": False,
        "correction": "none",
        "prediction": None,
        "buffer_bytes": 0,
        "rest_bytes": 0,
        "formats": {},
    }
    links: dict[str, dict[str, int]] = {}
    if planned is not None:
        stats["plan"] = planned.plan.hash()
        stats["late"] = planned.late
        stats["correction"] = planned.route.correction if planned.late else "none"
        expected = planned.plan.prediction
        stats["prediction"] = None if expected is None else expected.model_dump()
        stats["buffer_bytes"] = planned.session.buffer_bytes
        stats["rest_bytes"] = planned.rest_bytes
        errors = by_format(planned.rounding_errors())
        stats["formats"] = {
            one: {"bytes": whole, "message_bytes": sent, "error": errors.get(one, 0.0)}
            for one, (whole, sent) in bytes_by_format(planned.plan).items()
        }
        for spec, seen in zip(planned.plan.links, planned.sent(), strict=True):
            links[spec.name] = {
                "bytes": seen.bytes,
                "messages": seen.messages,
                "communication_us": seen.busy_us,
            }
    for key in ("bytes", "messages", "communication_us"):
        stats[key] = sum(link[key] for link in links.values())
    stats["links"] = links
    return stats
