import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.errors import PlanError
from deft_horovod.plan import Arena, Bucket, Generation, Link, Plan, Slot, Task

ARENA = Arena(dtype="float32", wire="float32", device="cpu", elements=16)
SLOT_A, SLOT_B = (
    Slot(name="a", arena=0, begin=0, end=7),
    Slot(name="b", arena=0, begin=8, end=16),
)
GOOD = {
    "policy": "hand-made",
    "links": (Link(name="link"),),
    "arenas": (ARENA,),
    "slots": (SLOT_A, SLOT_B),
    "buckets": (Bucket(arena=0, begin=0, end=8), Bucket(arena=0, begin=8, end=16)),
    "generations": (Generation(bucket=0), Generation(bucket=1)),
    "tasks": (Task(generation=0), Task(generation=1)),
}


def one_bucket(generations, tasks, **others):
    """A plan of a single bucket, for the rules on time."""
    fields = {"policy": "hand-made", "links": GOOD["links"], "arenas": (ARENA,)}
    fields |= {"slots": (SLOT_A, SLOT_B), "buckets": (Bucket(arena=0, begin=0, end=16),)}
    return Plan(**{**fields, "generations": generations, "tasks": tasks, **others})


def test_the_good_plan_is_good():
    assert Plan(**GOOD).period == 1


@pytest.mark.parametrize(
    ("rule", "changes", "text"),
    [
        ("references", {"slots": (SLOT_A, Slot(name="b", arena=1, begin=8, end=16))}, "slot 1"),
        ("references", {"tasks": (Task(generation=0), Task(generation=2))}, "generation 2"),
        ("references", {"tasks": (Task(generation=0), Task(generation=1, link=1))}, "link 1"),
        ("references", {"generations": (Generation(bucket=0), Generation(bucket=5))}, "bucket 5"),
        (
            "arenas",
            {"arenas": (Arena(dtype="int8", wire="int8", device="cpu", elements=16),)},
            "int8",
        ),
        ("slots", {"slots": (SLOT_A, Slot(name="a", arena=0, begin=8, end=16))}, "'a' twice"),
        ("slots", {"slots": (SLOT_A, Slot(name="b", arena=0, begin=9, end=16))}, "not aligned"),
        ("slots", {"slots": (SLOT_A, Slot(name="b", arena=0, begin=8, end=11))}, "no header"),
        ("slots", {"slots": (SLOT_A, Slot(name="b", arena=0, begin=8, end=17))}, "leaves arena 0"),
        ("slots", {"slots": (SLOT_A, Slot(name="b", arena=0, begin=4, end=16))}, "overlap"),
        (
            "tiling",
            {"buckets": (Bucket(arena=0, begin=0, end=4), Bucket(arena=0, begin=8, end=16))},
            "begins at 4",
        ),
        (
            "tiling",
            {"buckets": (Bucket(arena=0, begin=0, end=12), Bucket(arena=0, begin=8, end=16))},
            "begins at 12",
        ),
        (
            "tiling",
            {"buckets": (Bucket(arena=0, begin=0, end=8), Bucket(arena=0, begin=8, end=12))},
            "element 12",
        ),
        (
            "tiling",
            {"buckets": (Bucket(arena=0, begin=0, end=6), Bucket(arena=0, begin=6, end=16))},
            "multiple of 16 bytes",
        ),
        ("tiling", {"slots": (SLOT_A,)}, "carries no slot"),
        ("links", {"links": (Link(name="link"), Link(name="link"))}, "'link' twice"),
        (
            "links",
            {"links": (Link(name="link", credit_bytes=9, plan_order=False),)},
            "credit of 9 bytes",
        ),
        (
            "links",
            {"links": (Link(name="link", credit_messages=2, plan_order=False),)},
            "2 messages",
        ),
        (
            "coverage",
            {"generations": (Generation(bucket=0), Generation(bucket=0))},
            "step 0 of bucket 0",
        ),
        ("coverage", {"period": 2}, "step 1 of bucket 0"),
        (
            "coverage",
            {"generations": (Generation(bucket=0), Generation(bucket=1, last_step=1))},
            "generation 1 does not end in the period",
        ),
        (
            "coverage",
            {"generations": (Generation(bucket=0), Generation(bucket=1, first_step=-1))},
            "generation 1 does not end in the period, or is longer",
        ),
        ("coverage", {"tasks": (Task(generation=0),)}, "generation 1 never travels"),
    ],
)
def test_the_broken_rule_is_named(rule, changes, text):
    with pytest.raises(PlanError, match=f"plan rule '{rule}'") as caught:
        Plan(**{**GOOD, **changes})
    assert text in str(caught.value)
    assert "expected:" in str(caught.value)


def test_a_generation_is_not_applied_before_it_is_complete():
    with pytest.raises(PlanError, match="'coverage': generation 0 is applied before"):
        one_bucket((Generation(bucket=0, last_step=1),), (Task(generation=0, step=1),), period=2)


@pytest.mark.parametrize(("apply_step", "meets"), [(1, True), (2, False), (3, True), (4, False)])
def test_a_boundary_has_one_generation_of_a_bucket(apply_step, meets):
    """Also across the end of a period: what is applied at 3 meets the next cycle's at 1."""
    generations = (
        Generation(bucket=0, apply_step=1),
        Generation(bucket=0, first_step=1, last_step=1, apply_step=apply_step),
    )
    tasks = (Task(generation=0), Task(generation=1, step=1))
    if not meets:
        assert one_bucket(generations, tasks, period=2, buffers=4).period == 2
        return
    with pytest.raises(PlanError, match="'boundaries': generations 0 and 1 of bucket 0"):
        one_bucket(generations, tasks, period=2, buffers=4)


@pytest.mark.parametrize(
    ("rule", "generation", "task"),
    [
        ("windows", {}, {"stage": "forward"}),
        ("deadlines", {}, {"step": 1, "stage": "forward"}),
        ("deadlines", {"gated": True}, {"step": 1}),
        ("deadlines", {"apply_step": 1}, {"step": 2, "stage": "forward"}),
    ],
)
def test_a_message_leaves_in_time(rule, generation, task):
    with pytest.raises(PlanError, match=f"plan rule '{rule}'"):
        one_bucket((Generation(bucket=0, **generation),), (Task(generation=0, **task),), buffers=2)


@pytest.mark.parametrize(
    ("generation", "task"),
    [
        ({}, {}),
        ({"gated": True}, {"step": 1, "stage": "forward"}),
        ({"apply_step": 1}, {"step": 1}),
        ({"apply_step": 1, "gated": True}, {"step": 2, "stage": "forward"}),
    ],
)
def test_the_last_possible_window_is_allowed(generation, task):
    one_bucket((Generation(bucket=0, **generation),), (Task(generation=0, **task),), buffers=2)


def delayed_before_sync(link):
    """Bucket 0 leaves one step late and stands before bucket 1, which is due at once."""
    return Plan(
        **{
            **GOOD,
            "buffers": 2,
            "links": (link,),
            "generations": (Generation(bucket=0, apply_step=1), Generation(bucket=1)),
            "tasks": (Task(generation=0, step=1), Task(generation=1)),
        }
    )


def test_none_stands_behind_one_that_opens_after_its_deadline():
    with pytest.raises(PlanError, match="'deadlines': task 1 leaves too late"):
        delayed_before_sync(Link(name="link"))
    assert delayed_before_sync(Link(name="link", plan_order=False)).buffers == 2


def test_nor_behind_one_of_the_cycle_before():
    tasks = (Task(generation=1), Task(generation=0, step=2, stage="forward"))
    generations = (Generation(bucket=0, apply_step=2), Generation(bucket=1))
    with pytest.raises(PlanError, match="'deadlines': task 1 leaves too late"):
        # Task 0 of the next cycle is due in backward 1, behind a message of forward 2.
        Plan(**{**GOOD, "buffers": 3, "generations": generations, "tasks": tasks[::-1]})
    with pytest.raises(PlanError, match="'deadlines': task 0 leaves too late"):
        Plan(**{**GOOD, "buffers": 3, "generations": generations, "tasks": tasks})


def test_the_messages_of_a_generation_run_in_turn():
    tasks = (
        Task(generation=0, op="reduce_scatter", step=1, stage="forward"),
        Task(generation=0, op="all_gather", link=1),
    )
    links = (Link(name="a"), Link(name="b"))
    gated = one_bucket((Generation(bucket=0, gated=True),), tasks, links=links)
    assert gated.tasks == tasks
    with pytest.raises(PlanError, match="deadlines"):
        one_bucket((Generation(bucket=0),), tasks, links=links)


@st.composite
def timetables(draw):
    """Generations of one bucket that cover a period, with delays."""
    period = draw(st.integers(1, 6))
    starts = sorted(draw(st.sets(st.integers(0, period - 1), min_size=1)))
    ends = [*(start - 1 for start in starts[1:]), starts[0] - 1 + period]
    timetable, free = [], set(range(period))
    for start, end in zip(starts, ends, strict=True):
        shift = period if end >= period else 0  # such a one began in the cycle before
        last = end - shift
        boundaries = [step for step in range(last, last + 8) if step % period in free]
        applied = draw(st.sampled_from(boundaries))
        free.remove(applied % period)
        timetable.append(
            Generation(bucket=0, first_step=start - shift, last_step=last, apply_step=applied)
        )
    return period, sorted(timetable, key=lambda generation: generation.first_step)


@given(timetables(), st.integers(1, 10))
def test_buffers_suffice_exactly_if_taking_them_in_turn_works(timetable, buffers):
    period, generations = timetable
    instances = [  # (first step, apply step), unrolled in the order in which buffers are taken
        (g.first_step + cycle * period, g.apply_step + cycle * period)
        for cycle in range(25)
        for g in generations
    ]
    works = all(
        instances[number - buffers][1] < begin
        for number, (begin, _) in enumerate(instances)
        if number >= buffers
    )
    tasks = tuple(Task(generation=i, step=g.last_step) for i, g in enumerate(generations))

    def make():
        return one_bucket(
            tuple(generations), tasks, period=period, buffers=buffers, links=(Link(name="link"),)
        )

    if works:
        assert make().buffers == buffers
    else:
        with pytest.raises(PlanError, match="plan rule 'buffers'"):
            make()
