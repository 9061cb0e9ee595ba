import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from deft_horovod.errors import PlanError
from deft_horovod.plan import Arena, Bucket, Generation, Link, Plan, Slot, Task
from deft_horovod.policies import get
from deft_horovod.profile import LinkCost, LinkProfile, Profile
from deft_horovod.solver.predict import timeline as module
from deft_horovod.solver.predict.costs import task_times_us
from deft_horovod.solver.predict.message_times import Traffic
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.naive_training import NaiveTraining
from tests.unit.support.planning import requests
from tests.unit.support.random_plans import plans

_STEPS = 7


@st.composite
def whole_profiles(draw, plan, cost=None):
    """Every time a whole number of microseconds, few enough to count them."""
    pick = draw(st.randoms(use_true_random=False))
    count = len(plan.slots)
    forward, backward = pick.randint(0, 20), pick.randint(0, 30)
    links = tuple(
        LinkProfile(
            name=link.name,
            cost=cost
            or LinkCost(
                alpha_us=pick.randint(0, 5), beta_us_per_byte=pick.choice([0.0, 0.0625, 0.125])
            ),
        )
        for link in plan.links
    )
    ready = pick.sample(range(backward + 8), count)
    return Profile(
        ready_order=tuple(sorted(range(count), key=lambda i: ready[i])),
        ready_us=tuple(ready),
        first_use_us=tuple(pick.choice([None, pick.randint(0, forward + 3)]) for _ in range(count)),
        forward_us=forward,
        backward_us=backward,
        optimizer_us=pick.randint(0, 4),
        links=links,
    )


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_it_agrees_with_training_told_tick_by_tick(data):
    plan = data.draw(plans())
    profile = data.draw(whole_profiles(plan))
    times = task_times_us(plan, profile)
    assume(all(time == int(time) for time in times))  # ticks count whole numbers only
    naive = NaiveTraining(plan, profile, times).run(_STEPS)
    moments = module.bucket_moments(plan.slots, plan.buckets, profile)
    run = module._Run(plan, profile, moments, Traffic(plan, times))
    for cycle in range(-(-_STEPS // plan.period)):
        run.cycle(cycle)
    # Who is first of two that may leave at the same moment is nobody's rule.
    as_ready = [
        (plan.tasks[task].link, leaves_us)
        for (task, _), leaves_us in naive.leaves_us.items()
        if not plan.links[plan.tasks[task].link].plan_order
    ]
    assume(len(set(as_ready)) == len(as_ready))
    assert run._spans[:_STEPS] == naive.stages
    assert {k: v for k, v in run._applied_us.items() if k in naive.applied_us} == naive.applied_us
    found = run._traffic._times
    for (task, cycle), arrives_us in naive.arrives_us.items():
        times = found[cycle * len(plan.tasks) + task]
        if times is not None:  # it was waited for, or leaves in plan order
            assert times[3] == arrives_us
            assert times[1] == naive.leaves_us[task, cycle]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_steady_period_is_how_training_goes_on(data):
    plan = data.draw(plans())
    profile = data.draw(whole_profiles(plan))
    times = task_times_us(plan, profile)
    assume(all(time == int(time) for time in times))
    result = simulate(plan, profile)
    assume(result.steady and all(link.plan_order for link in plan.links))
    naive = NaiveTraining(plan, profile, times).run(12 * plan.period)
    begins = [stages[0] for stages in naive.stages]
    assert result.step_us == pytest.approx(
        (begins[-1] - begins[-1 - plan.period]) / plan.period, abs=1e-6
    )


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_step_is_shorter_than_compute_or_than_what_a_link_carries(data):
    plan = data.draw(plans())
    profile = data.draw(whole_profiles(plan))
    result = simulate(plan, profile)
    assert result == simulate(plan, profile)
    assert result.exposed_us >= 0.0
    assert result.compute_us == profile.compute_us <= result.step_us
    times = task_times_us(plan, profile)
    for number, busy in enumerate(result.link_busy):
        volume_us = sum(t for t, task in zip(times, plan.tasks, strict=True) if task.link == number)
        assert result.step_us * plan.period >= volume_us * (1 - 1e-9)
        assert 0.0 <= busy <= 1.0 + 1e-9
    if result.steady:
        waited_us = sum(wait.ends_us - wait.begins_us for wait in result.waits)
        assert result.exposed_us * plan.period == pytest.approx(waited_us, abs=1e-6)
        assert result.period_us == pytest.approx(result.step_us * plan.period)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_messages_and_stages_are_in_order(data):
    plan = data.draw(plans())
    result = simulate(plan, data.draw(whole_profiles(plan)))
    assert [message.task for message in result.messages] == list(range(len(plan.tasks)))
    for message in result.messages:
        assert message.link == plan.tasks[message.task].link
        assert message.ready_us <= message.leaves_us <= message.starts_us
        assert message.starts_us <= message.arrives_us <= message.applied_us
    ends_us = 0.0
    for span in result.stages:
        assert ends_us <= span.begins_us <= span.ends_us
        ends_us = span.ends_us
    assert [(s.step, s.stage) for s in result.stages] == [
        (step, stage) for step in range(plan.period) for stage in ("forward", "backward", "update")
    ]
    if result.steady:  # those of the period before are in the same places, one period earlier
        for number in range(len(plan.links)):
            carried = sorted(
                (m.starts_us % result.period_us, m.arrives_us - m.starts_us)
                for m in result.messages
                if m.link == number and m.arrives_us > m.starts_us
            )
            for (one_us, takes_us), (other_us, _) in pairwise(carried):
                assert one_us + takes_us <= other_us + 1e-6


@given(requests(linked=True), st.sampled_from(["bucket", "wfbp", "priority", "stock"]))
def test_the_policies_can_be_simulated(request, policy):
    result = simulate(get(policy).plan(request), request.profile)
    assert result.steady
    if policy == "stock":
        assert result.step_us == pytest.approx(request.profile.compute_us)
        assert result.messages == ()


@given(requests(linked=True), st.sampled_from(["bucket", "wfbp"]), st.floats(1.0, 100.0))
def test_a_slower_link_makes_no_as_ready_plan_faster(request, policy, factor):
    plan, profile = get(policy).plan(request), request.profile
    cost = profile.link
    slower = LinkCost(alpha_us=cost.alpha_us, beta_us_per_byte=cost.beta_us_per_byte * factor)
    later = profile.model_copy(update={"links": Profile.link_of(slower)})
    before_us = simulate(plan, profile).step_us
    assert simulate(plan, later).step_us >= before_us - 1e-9 * before_us


UNIT = 1000  # float32 elements of a slot: messages of 4,000 bytes


def plan_of(generations, tasks, *, buckets=2, period=1, links=("wire",), buffers=3):
    return Plan(
        policy="hand-made",
        period=period,
        buffers=buffers,
        links=tuple(Link(name=name) for name in links),
        arenas=(Arena(dtype="float32", wire="float32", device="cpu", elements=buckets * UNIT),),
        slots=tuple(
            Slot(name=f"s{i}", arena=0, begin=i * UNIT, end=(i + 1) * UNIT) for i in range(buckets)
        ),
        buckets=tuple(Bucket(arena=0, begin=i * UNIT, end=(i + 1) * UNIT) for i in range(buckets)),
        generations=tuple(generations),
        tasks=tuple(tasks),
    )


def profile_of(message_us, *, links=("wire",), uses=(30.0, 0.0), **busy):
    """Forward 60, backward 100, update 10; bucket 0 is ready first."""
    return Profile(
        ready_order=(0, 1),
        ready_us=(40.0, 100.0),
        first_use_us=uses,
        forward_us=60.0,
        backward_us=100.0,
        optimizer_us=10.0,
        links=tuple(
            LinkProfile(name=name, cost=LinkCost(alpha_us=message_us, beta_us_per_byte=0.0), **busy)
            for name in links
        ),
    )


def test_synchronous_by_hand():
    plan = plan_of(
        [Generation(bucket=0), Generation(bucket=1)], [Task(generation=0), Task(generation=1)]
    )
    result = simulate(plan, profile_of(50.0))
    assert (result.step_us, result.compute_us, result.exposed_us) == (220.0, 170.0, 50.0)
    assert [(m.ready_us, m.starts_us, m.arrives_us, m.applied_us) for m in result.messages] == [
        (100.0, 100.0, 150.0, 210.0),
        (160.0, 160.0, 210.0, 210.0),
    ]
    assert [(w.generation, w.begins_us, w.ends_us) for w in result.waits] == [(1, 160.0, 210.0)]
    assert result.link_busy == (pytest.approx(100 / 220),)


def test_gated_by_hand():
    """Bucket 1 is used at once, so it is waited for in full; bucket 0 only 30 us later."""
    plan = plan_of(
        [Generation(bucket=0, gated=True), Generation(bucket=1, gated=True)],
        [Task(generation=1), Task(generation=0, step=1, stage="forward")],
    )
    result = simulate(plan, profile_of(50.0))
    # Bucket 1 leaves at 160 and arrives at 210, forward begins at 170: 40 us of waiting. Bucket 0
    # is on the link from 210 to 260 and needed at 210 + 30: another 20.
    assert result.exposed_us == pytest.approx(60.0)
    assert [w.generation for w in result.waits] == [1, 0]


def test_delayed_by_hand():
    plan = plan_of(
        [Generation(bucket=0, apply_step=1), Generation(bucket=1, apply_step=1)],
        [Task(generation=0), Task(generation=1)],
    )
    assert simulate(plan, profile_of(80.0)).exposed_us == 0.0
    saturated = simulate(plan, profile_of(100.0))
    assert saturated.step_us == pytest.approx(200.0)
    assert saturated.link_busy == (pytest.approx(1.0),)


def test_merged_by_hand():
    """Both steps' gradients at once: half of the messages, which fit again."""
    plan = plan_of(
        [Generation(bucket=b, last_step=1, apply_step=2) for b in (0, 1)],
        [Task(generation=0, step=1), Task(generation=1, step=1)],
        period=2,
    )
    result = simulate(plan, profile_of(100.0))
    assert (result.step_us, result.exposed_us, result.period_us) == (170.0, 0.0, 340.0)


def test_two_links_use_what_was_measured_with_both_busy():
    plan = plan_of(
        [Generation(bucket=0), Generation(bucket=1)],
        [Task(generation=0), Task(generation=1, link=1)],
        links=("wire", "other"),
    )
    busy = LinkCost(alpha_us=70.0, beta_us_per_byte=0.0)
    both = ("wire", "other")
    assert simulate(plan, profile_of(50.0, links=both)).exposed_us == 50.0
    assert simulate(plan, profile_of(50.0, links=both, busy_cost=busy)).exposed_us == 70.0


def test_half_an_all_reduce_costs_half_of_the_bytes():
    plan = plan_of(
        [Generation(bucket=0), Generation(bucket=1)],
        [
            Task(generation=0),
            Task(generation=1, op="reduce_scatter"),
            Task(generation=1, op="all_gather"),
        ],
    )
    cost = LinkCost(alpha_us=1.0, beta_us_per_byte=0.01)
    profile = profile_of(0.0).model_copy(update={"links": (LinkProfile(name="wire", cost=cost),)})
    times = [m.arrives_us - m.starts_us for m in simulate(plan, profile).messages]
    assert times == pytest.approx([41.0, 21.0, 21.0])


def test_a_link_that_barely_carries_it_all_counts_in_the_long_run():
    """0.1% more than fits: the backlog takes longer to build up than anybody simulates."""
    plan = plan_of(
        [Generation(bucket=0, apply_step=1), Generation(bucket=1, apply_step=1)],
        [Task(generation=0), Task(generation=1)],
    )
    result = simulate(plan, profile_of(85.085))
    assert not result.steady
    assert result.step_us == pytest.approx(170.17)


def test_a_plan_of_another_model_is_refused():
    plan = plan_of(
        [Generation(bucket=0), Generation(bucket=1)], [Task(generation=0), Task(generation=1)]
    )
    with pytest.raises(PlanError, match="of different models"):
        simulate(plan, Profile.assumed(3))


def test_an_unmeasured_link_is_refused_by_name():
    plan = plan_of(
        [Generation(bucket=0), Generation(bucket=1)], [Task(generation=0), Task(generation=1)]
    )
    with pytest.raises(PlanError, match="what link 'wire' costs"):
        simulate(plan, Profile.assumed(2))


@pytest.mark.alone
def test_eight_thousand_messages_take_well_under_a_second():
    count, period = 1000, 8
    generations = [
        Generation(bucket=b, first_step=k, last_step=k, apply_step=k + 1)
        for k in range(period)
        for b in range(count)
    ]
    tasks = [
        Task(generation=g, step=generation.last_step) for g, generation in enumerate(generations)
    ]
    plan = plan_of(generations, tasks, buckets=count, period=period)
    profile = Profile.assumed(count).model_copy(update={"links": profile_of(2.0).links})
    began = time.thread_time()  # other tests have left threads
    result = simulate(plan, profile)
    assert time.thread_time() - began < 1.0  # 0.12 s on a quiet core
    assert result.steady
