"""MeshLink between the threads of one process: parts, tags, refusals, failures, ends."""

import time

import pytest
import torch
import torch.distributed as dist

from deft_horovod.runtime.extension import native
from tests.unit.extension.test_c10d_link import (
    WAIT_S,
    end,
    eventually,
    groups,
    has_ended,
    threads_of_this_process,
)

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch has no Gloo"),
]


def meshes(size=2, limit_s=30.0):
    """One mesh per rank; nobody else refers to the groups."""
    made = groups(size, limit_s)
    return [native.MeshLink(made.pop(0), "Gloo on lo") for _ in range(size)]


def gather(mesh, rank, size, tag=0, elements=9):
    """This rank's part of a gathering, and where all of them arrive."""
    output = torch.full((size * elements,), -1.0)
    part = torch.full((elements,), float(rank))
    return mesh.send("m", "all_gather", part, output, tag=tag), output


def gathered(made, tag=0, elements=9):
    """One message of all ranks."""
    size = len(made)
    sent = [gather(mesh, rank, size, tag, elements) for rank, mesh in enumerate(made)]
    return [ticket for ticket, _ in sent], [output for _, output in sent]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.float32])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_unlike_parts_arrive_in_the_order_of_ranks(size, dtype):
    made = meshes(size)
    counts = [(3 * rank * rank + rank) % 7 for rank in range(size)]  # some bring nothing
    parts = [torch.arange(count).to(dtype) + 10 * rank for rank, count in enumerate(counts)]
    outputs = [torch.zeros(sum(counts), dtype=dtype) for _ in made]
    tickets = [
        mesh.send("m", "all_gather", part, output, from_ranks=counts, tag=3)
        for mesh, part, output in zip(made, parts, outputs, strict=True)
    ]
    assert end(tickets) == [""] * size
    for output in outputs:
        assert torch.equal(output, torch.cat(parts))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_each_rank_gets_the_parts_that_are_for_it(size):
    made = meshes(size)
    counts = [[(2 * to + 3 * of) % 5 for to in range(size)] for of in range(size)]
    given = [
        [torch.full((count,), float(10 * of + to)) for to, count in enumerate(counts[of])]
        for of in range(size)
    ]
    outputs = [torch.zeros(sum(counts[of][to] for of in range(size))) for to in range(size)]
    tickets = [
        mesh.send(
            "m",
            "all_to_all",
            torch.cat(given[rank]),
            outputs[rank],
            to_ranks=counts[rank],
            from_ranks=[counts[of][rank] for of in range(size)],
            tag=0,
        )
        for rank, mesh in enumerate(made)
    ]
    assert end(tickets) == [""] * size
    for rank, output in enumerate(outputs):
        assert torch.equal(output, torch.cat([given[of][rank] for of in range(size)]))


def test_without_counts_parts_are_equal():
    made = meshes(3)
    given = [torch.arange(6.0) + 10 * rank for rank in range(3)]
    outputs = [torch.zeros(6) for _ in made]
    tickets = [
        mesh.send("m", "all_to_all", mine, output, tag=0)
        for mesh, mine, output in zip(made, given, outputs, strict=True)
    ]
    assert end(tickets) == [""] * 3
    for rank, output in enumerate(outputs):
        assert output.tolist() == [10.0 * of + 2 * rank + i for of in range(3) for i in (0, 1)]


def test_messages_meet_by_their_tags_in_whatever_order_they_were_sent():
    first, second = meshes()
    order = range(20)
    sent = {tag: gather(first, tag, 2, tag) for tag in order}
    for tag in reversed(order):  # the last of there is the first here, and ends at once
        assert not has_ended(sent[tag][0])
        ticket, output = gather(second, 100 + tag, 2, tag)
        assert end([ticket, sent[tag][0]]) == ["", ""]
        expected = torch.tensor([float(tag)] * 9 + [100.0 + tag] * 9)
        assert torch.equal(output[9:], expected[9:])
        assert torch.equal(sent[tag][1][:9], expected[:9])


def test_a_tag_may_be_used_again_once_its_message_has_arrived():
    made = meshes(3)
    for step in range(30):
        tickets, outputs = gathered(made, tag=7, elements=1 + step * 1000)
        assert end(tickets) == [""] * 3
        for output in outputs:
            assert output.view(3, -1).unique(dim=1).flatten().tolist() == [0.0, 1.0, 2.0]


def test_sending_does_not_wait_for_the_other_ranks():
    first, second = meshes()
    sent = [gather(first, 0, 2, tag) for tag in range(50)]
    assert not first.wait_idle(0.05)
    sent += [gather(second, 1, 2, tag) for tag in range(50)]
    assert first.wait_idle(WAIT_S)
    assert end([ticket for ticket, _ in sent]) == [""] * 100


@pytest.mark.parametrize(
    ("op", "to_ranks", "from_ranks", "tag", "reason"),
    [
        ("all_reduce", (), (), 0, "all_to_all and all_gather alone, not an all_reduce"),
        ("all_to_all", (2, 1), (2, 1), -1, "no tag"),
        ("all_to_all", (1, 1, 1), (2, 1), 0, "which add up"),  # of three ranks
        ("all_to_all", (2, 2), (2, 1), 0, "which add up"),  # four elements of three
        ("all_to_all", (2, 1), (1, 1), 0, "which add up"),  # room for three
        ("all_to_all", (2, 1), (1, 2), 0, "which add up"),  # keeps two of its own, expects one
        ("all_gather", (), (2, 1), 0, "which add up"),  # rank 0 brings three
    ],
)
def test_what_cannot_travel_is_refused_at_once_and_the_rest_still_does(
    op, to_ranks, from_ranks, tag, reason
):
    made = meshes()
    values = torch.ones(3)
    said = made[0].send("m", op, values, torch.ones(3), 0, to_ranks, from_ranks, tag).wait(0.0)
    assert reason in said
    assert end(gathered(made)[0]) == ["", ""]


def test_a_rank_that_leaves_fails_what_waits_for_it_and_all_that_comes_after():
    first, second = meshes()
    waiting = [gather(first, 0, 2, tag)[0] for tag in range(3)]
    assert not first.wait_idle(0.05)
    began_s = time.monotonic()
    del second
    reasons = end(waiting)
    assert time.monotonic() - began_s < 5.0
    assert reasons[0].startswith("Gloo on lo failed: ")
    assert ".cpp" not in reasons[0]
    assert reasons == [reasons[0]] * 3
    assert end([gather(first, 0, 2)[0]]) == reasons[:1]


def test_a_failure_wakes_what_waits_for_living_ranks():
    """Two messages that only some have sent: no rank that is alive would ever answer the other."""
    made = meshes(4)
    tickets = [gather(made[rank], rank, 4, rank)[0] for rank in range(3)]
    assert not any(mesh.wait_idle(0.02) for mesh in made[:3])
    began_s = time.monotonic()
    del made[3]
    assert all("failed" in reason for reason in end(tickets))
    assert time.monotonic() - began_s < 5.0


def test_a_rank_that_stays_silent_fails_the_message_after_the_limit():
    first, second = meshes(limit_s=0.5)
    began_s = time.monotonic()
    (reason,) = end([gather(first, 0, 2)[0]])
    assert 0.3 < time.monotonic() - began_s < 5.0
    assert "failed" in reason
    # The other learns of it too, though it comes in time for itself.
    assert "failed" in end([gather(second, 1, 2)[0]])[0]


def test_messages_outlive_their_mesh():
    for _ in range(10):
        first, second = meshes()
        ticket, output = gather(first, 1, 2, elements=50_000)
        del first  # does not wait: the other rank has not sent its part
        assert end([gather(second, 0, 2, elements=50_000)[0], ticket]) == ["", ""]
        assert torch.equal(output[50_000:], torch.zeros(50_000))


def test_no_thread_and_no_connection_stays_behind():
    meshes()
    before = threads_of_this_process()
    for number in range(10):
        first, second = meshes()
        tickets = [gather(first, 0, 2)[0], gather(second, 1, 2)[0]]
        if number % 2:
            assert end(tickets) == ["", ""]
        del first, second, tickets
    assert eventually(lambda: threads_of_this_process() <= before)
