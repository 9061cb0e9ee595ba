"""As much as possible stays as it is, as long as the plan fits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.wire_format import EXACT, WireFormat
from deft_horovod.plan import Plan
from deft_horovod.plan.formats import message_bytes
from deft_horovod.solver.least_stale.finer import finer
from tests.unit.support.random_plans import plans

FORMATS: tuple[WireFormat, ...] = ("f16", "int8")
ORDER = (EXACT, *FORMATS)


def rounded(plan: Plan) -> Plan:
    """All that can be is in the coarsest format."""
    buckets = tuple(
        bucket.model_copy(update={"format": "int8"})
        if plan.arenas[bucket.arena].wire == "float32"
        else bucket
        for bucket in plan.buckets
    )
    return plan.model_copy(update={"buckets": buckets})


def harm(plan: Plan) -> list[int]:
    return [ORDER.index(bucket.format) for bucket in plan.buckets]


@given(plans(), st.floats(0.0, 1.0), st.data())
def test_the_result_fits_and_is_nowhere_coarser(
    plan: Plan, share: float, data: st.DataObject
) -> None:
    plan = rounded(plan)
    ready_us = data.draw(st.lists(st.floats(0, 100), min_size=(n := len(plan.buckets)), max_size=n))
    least = sum(message_bytes(plan))
    limit = least + share * max(0, sum(message_bytes(_all(plan, EXACT))) - least)

    def fits(other: Plan) -> bool:
        return sum(message_bytes(other)) <= limit

    found = finer(plan, ready_us, FORMATS, fits)
    assert fits(found)
    assert all(now <= before for now, before in zip(harm(found), harm(plan), strict=True))
    assert found.model_copy(update={"buckets": plan.buckets}) == plan
    # What is ready earlier is nowhere coarser than what is ready later.
    changed = [i for i, bucket in enumerate(plan.buckets) if bucket.format != EXACT]
    in_order = [harm(found)[i] for i in sorted(changed, key=lambda i: ready_us[i])]
    assert in_order == sorted(in_order)


@given(plans())
def test_what_fits_as_it_is_stays_as_it_is(plan: Plan) -> None:
    plan = rounded(plan)
    whole = finer(plan, [0.0] * len(plan.buckets), FORMATS, lambda _: True)
    assert {bucket.format for bucket in whole.buckets} <= {EXACT}
    coarsest = finer(plan, [0.0] * len(plan.buckets), FORMATS, lambda other: other == plan)
    assert coarsest == plan


def _all(plan: Plan, wire_format: WireFormat) -> Plan:
    buckets = (bucket.model_copy(update={"format": wire_format}) for bucket in plan.buckets)
    return plan.model_copy(update={"buckets": tuple(buckets)})
