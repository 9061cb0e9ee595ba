import pytest

from deft_horovod.errors import PlanError
from deft_horovod.plan import Arena, Bucket, Generation, Link, Plan, Slot, Task
from deft_horovod.solver.predict.message_times import Traffic, window_of


def plan_with(link, tasks, buckets=3, delay=0):
    """Buckets of 16 bytes."""
    return Plan(
        policy="hand-made",
        buffers=delay + 1,
        links=(link,),
        arenas=(Arena(dtype="float32", wire="float32", device="cpu", elements=4 * buckets),),
        slots=tuple(
            Slot(name=f"s{i}", arena=0, begin=4 * i, end=4 * i + 4) for i in range(buckets)
        ),
        buckets=tuple(Bucket(arena=0, begin=4 * i, end=4 * i + 4) for i in range(buckets)),
        generations=tuple(Generation(bucket=i, apply_step=delay) for i in range(buckets)),
        tasks=tuple(tasks),
    )


def run(plan, ready, times=(10.0, 10.0, 10.0)):
    """One step: forward from 0, backward from 100, gradients at the given times."""
    traffic = Traffic(plan, times)
    traffic.open_window(0.0)
    traffic.open_window(100.0)
    traffic.complete(sorted((time, index) for index, time in enumerate(ready)), 0)
    return traffic


def leaves(traffic, generations=(0, 1, 2)):
    for generation in generations:
        traffic.arrival_us(generation, 0)
    return [times.leaves_us for times in traffic.times(0)]


TASKS = [Task(generation=g) for g in (2, 0, 1)]


def test_windows_are_numbered_in_the_order_of_time():
    order = [Task(generation=0, step=s, stage=st) for s in (0, 1) for st in ("forward", "backward")]
    assert [window_of(task) for task in order] == [0, 1, 2, 3]


def test_in_plan_order_the_first_one_holds_up_the_others():
    traffic = run(plan_with(Link(name="wire"), TASKS), [100.0, 110.0, 150.0])
    assert leaves(traffic) == [150.0, 150.0, 150.0]
    assert [times.arrives_us for times in traffic.times(0)] == [160.0, 170.0, 180.0]


def test_as_ready_nobody_waits_for_another_one():
    link = Link(name="wire", plan_order=False)
    traffic = run(plan_with(link, TASKS), [100.0, 105.0, 150.0])
    assert leaves(traffic) == [150.0, 100.0, 105.0]
    assert traffic.arrival_us(1, 0) == 120.0  # the link was busy until 110


@pytest.mark.parametrize(
    "link",
    [
        Link(name="wire", credit_messages=1),
        Link(name="wire", credit_bytes=31),
        Link(name="wire", credit_bytes=1),  # larger than all of it: travels alone
    ],
)
def test_credit_holds_back_until_something_arrives(link):
    traffic = run(plan_with(link, TASKS), [100.0, 100.0, 100.0])
    assert leaves(traffic) == [100.0, 110.0, 120.0]


def test_two_messages_fit_in_a_credit_of_their_bytes():
    traffic = run(plan_with(Link(name="wire", credit_bytes=32), TASKS), [100.0, 100.0, 100.0])
    assert leaves(traffic) == [100.0, 100.0, 110.0]


@pytest.mark.parametrize("in_order", [True, False])
def test_a_window_holds_back_until_it_opens(in_order):
    link = Link(name="wire", plan_order=in_order)
    tasks = [Task(generation=0), Task(generation=1), Task(generation=2, step=1, stage="forward")]
    traffic = run(plan_with(link, tasks, delay=1), [100.0, 100.0, 100.0])
    assert traffic.arrival_us(1, 0) == 120.0
    traffic.open_window(200.0)
    assert leaves(traffic) == [100.0, 100.0, 200.0]
    assert list(traffic.times(0))[2].ready_us == 100.0


@pytest.mark.parametrize("in_order", [True, False])
def test_the_messages_of_a_generation_go_one_after_another(in_order):
    link = Link(name="wire", plan_order=in_order)
    tasks = [Task(generation=0, op="reduce_scatter"), Task(generation=0, op="all_gather")]
    traffic = run(plan_with(link, tasks, buckets=1), [100.0])
    assert leaves(traffic, [0]) == [100.0, 110.0]


def test_one_that_would_never_arrive_is_reported():
    traffic = Traffic(plan_with(Link(name="wire"), TASKS), (10.0, 10.0, 10.0))
    traffic.open_window(0.0)
    traffic.open_window(100.0)
    traffic.complete([(100.0, 0)], 0)
    with pytest.raises(PlanError, match="generation 0 of cycle 0 would never arrive"):
        traffic.arrival_us(0, 0)
