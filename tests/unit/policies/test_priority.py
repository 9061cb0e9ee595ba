from hypothesis import given

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.plan.contents import contents
from deft_horovod.policies import Request
from deft_horovod.profile import LinkCost, Profile
from tests.unit.support.planning import bucket_bytes, make_parameters, requests

PRIORITY = policies.get("priority")


def window(task):
    return (task.step, task.stage == "backward")


@given(requests())
def test_messages_keep_to_the_partition_and_the_credit_is_that_of_the_config(request):
    plan = PRIORITY.plan(request)
    for bucket in plan.buckets:
        assert bucket_bytes(plan.arenas, bucket) <= request.config.partition_bytes
    link = plan.links[0]
    assert link.plan_order
    assert link.credit_bytes == request.config.credit_bytes
    assert link.credit_messages == min(request.config.credit_messages or 8, 8)


@given(requests())
def test_a_parameter_is_gated_if_its_first_use_is_known(request):
    plan = PRIORITY.plan(request)
    for generation, inside in zip(
        plan.generations, contents(plan.slots, plan.buckets), strict=True
    ):
        for index in inside:
            assert generation.gated == (request.profile.first_use_us[index] is not None)


@given(requests(linked=True))
def test_windows_never_go_back_and_only_gated_pieces_leave_in_forward(request):
    plan = PRIORITY.plan(request)
    windows = [window(task) for task in plan.tasks]
    assert windows == sorted(windows)
    assert set(windows) <= {(0, True), (1, False)}
    for task in plan.tasks:
        assert task.stage == "backward" or plan.generations[task.generation].gated


@given(requests(linked=True))
def test_what_leaves_in_forward_leaves_in_the_order_of_use(request):
    plan = PRIORITY.plan(request)
    inside = contents(plan.slots, plan.buckets)
    uses = [
        min(request.profile.first_use_us[index] for index in inside[task.generation])
        for task in plan.tasks
        if task.stage == "forward"
    ]
    assert uses == sorted(uses)


@given(requests(linked=False))
def test_before_the_link_was_measured_everything_leaves_in_backward_in_ready_order(request):
    plan = PRIORITY.plan(request)
    assert {window(task) for task in plan.tasks} == {(0, True)}
    position = {index: place for place, index in enumerate(request.profile.ready_order)}
    inside = contents(plan.slots, plan.buckets)
    complete = [max(position[i] for i in inside[task.generation]) for task in plan.tasks]
    assert complete == sorted(complete)


def three_layers(**changes):
    """Backward takes 300 us, the last layer's gradient comes first; 64 kB travel in 640 us."""
    profile = Profile(
        ready_order=(2, 1, 0),
        ready_us=(300.0, 200.0, 100.0),
        first_use_us=(0.0, 50.0, 100.0),
        forward_us=150.0,
        backward_us=300.0,
        links=Profile.link_of(LinkCost(alpha_us=0.0, beta_us_per_byte=0.01)),
    )
    return Request(
        make_parameters([16_380] * 3),  # 65,520 bytes and a header of 16: four pieces each
        Profile(**{**profile.model_dump(), **changes}),
        Config(partition_bytes=16_384, credit_messages=1, credit_bytes=0),
    )


def leaving(plan):
    inside = contents(plan.slots, plan.buckets)
    return [(inside[task.generation][0], task.stage) for task in plan.tasks]


def test_the_first_layer_overtakes_what_is_still_waiting():
    # One piece takes 164 us: they leave at 100, 264, 428 us and so on; backward ends at 300 us.
    assert leaving(PRIORITY.plan(three_layers())) == (
        [(2, "backward"), (1, "backward")]
        + [(0, "forward")] * 4
        + [(1, "forward")] * 3
        + [(2, "forward")] * 3
    )


def test_what_cannot_be_gated_leaves_first_and_in_backward():
    plan = PRIORITY.plan(three_layers(first_use_us=(0.0, 50.0, None)))
    assert leaving(plan) == ([(2, "backward")] * 4 + [(0, "forward")] * 4 + [(1, "forward")] * 4)


def test_on_a_fast_link_everything_leaves_in_backward_as_it_becomes_ready():
    fast = LinkCost(alpha_us=0.0, beta_us_per_byte=1e-6)
    assert leaving(PRIORITY.plan(three_layers(links=Profile.link_of(fast)))) == (
        [(2, "backward")] * 4 + [(1, "backward")] * 4 + [(0, "backward")] + [(0, "forward")] * 3
    )


def test_it_asks_to_plan_again_when_the_link_is_measured():
    assert PRIORITY.replan_after_steps == 3
