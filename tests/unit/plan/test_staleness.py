from hypothesis import given

from deft_horovod.plan import Arena, Bucket, Generation, Link, Plan, Slot, Staleness, Task
from deft_horovod.plan.contents import bucket_bytes
from deft_horovod.plan.staleness import mean_staleness, staleness, updates_per_step
from tests.unit.support.random_plans import plans


@given(plans())
def test_together_the_classes_are_the_gradients_of_one_step(plan):
    classes = staleness(plan)
    assert sum(c.bytes for c in classes) == sum(bucket_bytes(plan))
    keys = [(c.delay, c.merged, c.gated) for c in classes]
    assert keys == sorted(set(keys))
    assert set(keys) == {
        (g.apply_step - g.last_step, g.last_step - g.first_step + 1, g.gated)
        for g in plan.generations
    }


@given(plans())
def test_updates_are_rarer_the_more_is_merged(plan):
    merged = [g.last_step - g.first_step + 1 for g in plan.generations]
    assert 1 / max(merged) <= updates_per_step(plan) * (1 + 1e-12)
    assert updates_per_step(plan) <= 1 / min(merged) * (1 + 1e-12)


def test_by_hand():
    """Of 48 bytes 16 are synchronous; 32 travel once in two steps, one step late."""
    plan = Plan(
        policy="hand-made",
        period=2,
        buffers=2,
        links=(Link(name="wire"),),
        arenas=(Arena(dtype="float32", wire="float32", device="cpu", elements=12),),
        slots=(
            Slot(name="a", arena=0, begin=0, end=4),
            Slot(name="b", arena=0, begin=4, end=12),
        ),
        buckets=(Bucket(arena=0, begin=0, end=4), Bucket(arena=0, begin=4, end=12)),
        generations=(
            Generation(bucket=0),
            Generation(bucket=0, first_step=1, last_step=1, apply_step=1),
            Generation(bucket=1, last_step=1, apply_step=2),
        ),
        tasks=(Task(generation=0), Task(generation=1, step=1), Task(generation=2, step=1)),
    )
    assert staleness(plan) == (
        Staleness(delay=0, merged=1, bytes=16),
        Staleness(delay=1, merged=2, bytes=32),
    )
    assert updates_per_step(plan) == (2 * 16 + 32) / (2 * 48)


def test_an_empty_plan_is_never_late():
    assert staleness(Plan(policy="stock")) == ()
    assert updates_per_step(Plan(policy="stock")) == 1.0


@given(plans())
def test_the_mean_lies_between_the_freshest_and_the_stalest(plan):
    kinds = [kind for kind in staleness(plan) if kind.bytes]
    each = [kind.delay + (kind.merged - 1) / 2 for kind in kinds]
    assert min(each, default=0.0) <= mean_staleness(kinds) <= max(each, default=0.0) + 1e-9
