"""Buckets, told one by one."""

from hypothesis import given

from deft_horovod.plan.contents import bucket_bytes
from deft_horovod.plan.rows import bucket_rows
from tests.unit.support.random_plans import plans


@given(plans())
def test_every_generation_and_every_message_is_told(plan):
    rows = bucket_rows(plan)
    assert [row.bucket for row in rows] == list(range(len(plan.buckets)))
    assert tuple(row.bytes for row in rows) == bucket_bytes(plan)
    assert sum(len(row.fates) for row in rows) == len(plan.generations)
    assert sum(len(fate.rides) for row in rows for fate in row.fates) == len(plan.tasks)


@given(plans())
def test_text_of_a_plan_says_the_same(plan):
    text = plan.describe()
    for row in bucket_rows(plan):
        assert f"bucket {row.bucket}: " in text
        assert row.carries in text
        for fate in row.fates:
            assert fate.text in text


@given(plans())
def test_alike_means_one_text(plan):
    for row in bucket_rows(plan):
        assert row.alike == all(fate.text == row.fates[0].text for fate in row.fates)
