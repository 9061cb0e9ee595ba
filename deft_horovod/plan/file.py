"""Whether a plan that comes from a file was made for this model."""

from __future__ import annotations

from collections.abc import Sequence

from deft_horovod.base.parameter import Parameter
from deft_horovod.errors import PlanError, explain
from deft_horovod.plan.plan import Plan
from deft_horovod.plan.rules import unit_elements


def require_fit(plan: Plan, parameters: Sequence[Parameter], path: str) -> None:
    """Refuses a plan whose slots are not these parameters, in this order.

    Raises:
        PlanError: names the first parameter that differs.
    """
    here = [(p.name, p.elements, p.dtype, p.wire, p.device) for p in parameters]
    there = []
    for slot in plan.slots:
        arena = plan.arenas[slot.arena]
        elements = slot.end - slot.begin - unit_elements(arena.wire)
        there.append((slot.name, elements, arena.dtype, arena.wire, arena.device))
    if here == there:
        return
    pairs = zip([*here, *[None] * len(there)], [*there, *[None] * len(here)], strict=False)
    mine, theirs = next(pair for pair in pairs if pair[0] != pair[1])
    raise PlanError(
        explain(
            f"the plan in {path} was not made for this model",
            tensor=(mine or theirs or ("",))[0],
            observed=f"in the file: {_text(theirs)}",
            expected=f"in the model: {_text(mine)}",
            action="make a plan of this model, or leave plan_file out",
        )
    )


def _text(entry: tuple[str, int, str, str, str] | None) -> str:
    if entry is None:
        return "no such parameter"
    name, elements, dtype, wire, device = entry
    return f"'{name}', {elements:,} elements of {dtype} on {device}, sent as {wire}"
