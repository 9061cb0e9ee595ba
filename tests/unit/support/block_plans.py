"""Small instances in round numbers, and what must hold for every plan of messages made of blocks.

A block is 1,024 bytes and takes 10 us, a message 20 us more, so k blocks take 20 + 10 k.
"""

from deft_horovod.config import Config
from deft_horovod.plan.contents import contents
from deft_horovod.policies import Request
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.planning import assert_carried_once, bucket_bytes, make_parameters

BLOCK_BYTES = 1024
COST = LinkCost(alpha_us=20.0, beta_us_per_byte=10.0 / BLOCK_BYTES)
HEADER_BYTES = 16


def instance(blocks, ready_us, use_us, forward_us, **changes):
    """Gradients of so many blocks; backward ends when the last one is ready."""
    profile = Profile(
        ready_order=tuple(sorted(range(len(ready_us)), key=lambda i: (ready_us[i], -i))),
        ready_us=ready_us,
        first_use_us=use_us,
        forward_us=forward_us,
        backward_us=changes.pop("backward_us", max(ready_us)),
        links=Profile.link_of(COST),
        **changes,
    )
    elements = [(int(count * BLOCK_BYTES) - HEADER_BYTES) // 4 for count in blocks]
    return Request(
        make_parameters(elements), profile, Config(partition_bytes=BLOCK_BYTES, tune=False)
    )


def many_gradients(count=2000, alpha_us=2.0):
    """Backward and communication take equally long; one gradient is a quarter of all bytes."""
    sizes = [1000 + 7 * (i % 500) for i in range(count)]
    sizes[count // 2] = sum(sizes) // 3
    profile = Profile.assumed(count)
    beta = profile.backward_us / (4 * sum(sizes))
    cost = LinkCost(alpha_us=alpha_us, beta_us_per_byte=beta)
    changes = {"links": Profile.link_of(cost)}
    return Request(make_parameters(sizes), profile.model_copy(update=changes), Config())


def leaving(plan):
    """(parameter, blocks, stage) of each message."""
    inside = contents(plan.slots, plan.buckets)
    return [
        (
            inside[plan.generations[task.generation].bucket][0],
            bucket_bytes(plan.arenas, plan.buckets[plan.generations[task.generation].bucket])
            / BLOCK_BYTES,
            task.stage,
        )
        for task in plan.tasks
    ]


def message_times_us(plan, request):
    cost = request.profile.link
    return [cost.time_us(bucket_bytes(plan.arenas, bucket)) for bucket in plan.buckets]


def assert_sound(plan, request):
    """Exact and synchronous, in order, one gradient a message; it runs, and no link idles once
    backward has ended."""
    use_us = request.profile.first_use_us
    assert_carried_once(request.parameters, plan.arenas, plan.slots, plan.buckets)
    inside = contents(plan.slots, plan.buckets)
    owners = [inside[generation.bucket] for generation in plan.generations]
    for generation, members in zip(plan.generations, owners, strict=True):
        assert len(members) == 1
        assert generation.delay == 0
        assert generation.merged == 1
        assert generation.gated == (use_us[members[0]] is not None)
    windows = [(task.step, task.stage == "backward") for task in plan.tasks]
    assert windows == sorted(windows)
    assert set(windows) <= {(0, True), (1, False)}
    behind = [owners[task.generation][0] for task in plan.tasks if task.stage == "forward"]
    assert None not in [use_us[index] for index in behind]
    assert behind == sorted(set(behind), key=lambda index: (use_us[index], index))
    timeline = simulate(plan, request.profile)
    assert timeline.exposed_us <= sum(message_times_us(plan, request)) + 1e-6 * timeline.step_us
