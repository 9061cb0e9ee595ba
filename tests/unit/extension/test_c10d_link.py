"""C10dLink between the threads of one process: order, refusals, failures, ends."""

import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from deft_horovod.runtime.extension import native

WAIT_S = 20.0
DTYPES = [torch.float16, torch.float32, torch.float64]

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch has no Gloo"),
]


def groups(size, limit_s=30.0):
    """Gloo's groups of so many ranks, connected over the loopback."""
    store = dist.HashStore()
    made = [None] * size

    def make(rank):
        options = dist.ProcessGroupGloo._Options()
        options._devices = [dist.ProcessGroupGloo.create_device(interface="lo")]
        options._timeout = timedelta(seconds=limit_s)
        made[rank] = dist.ProcessGroupGloo(store, rank, size, options)

    threads = [threading.Thread(target=make, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made


def links(size=2, limit_s=30.0, **options):
    """One link per rank; nobody else refers to the groups."""
    made = groups(size, limit_s)
    return [
        native.C10dLink(made.pop(0), "Gloo on lo", range(10, 10 + size), **options)
        for _ in range(size)
    ]


def sent_by(made, op="all_reduce", dtype=torch.float32):
    """One message from each of these links."""
    values = [torch.ones(9, dtype=dtype) for _ in made]
    return [link.send("m", op, v, v, 10) for link, v in zip(made, values, strict=True)]


def end(tickets):
    """How each of these ended; empty: well."""
    return [ticket.wait(WAIT_S) for ticket in tickets]


def has_ended(ticket):
    try:
        ticket.wait(0.0)
    except RuntimeError:
        return False
    return True


def threads_of_this_process():
    return len(list(Path("/proc/self/task").iterdir()))


def eventually(condition, limit_s=10.0):
    ends_s = time.monotonic() + limit_s
    while time.monotonic() < ends_s:
        if condition():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_sums_and_averages_are_scaled_before_and_after(size, dtype):
    values = [torch.arange(33).to(dtype) * (rank + 1) for rank in range(size)]
    for average, pre, post in ((True, 1.0, 1.0), (False, 1.0, 1.0), (True, 0.5, 4.0)):
        made = links(size, average=average, prescale=pre, postscale=post)
        outputs = [torch.empty(33, dtype=dtype) for _ in made]
        tickets = [
            link.send("m", "all_reduce", v, o)
            for link, v, o in zip(made, values, outputs, strict=True)
        ]
        assert end(tickets) == [""] * size
        expected = sum(v.double() for v in values) * pre * post / (size if average else 1)
        for output in outputs:
            torch.testing.assert_close(output.double(), expected, rtol=2e-3, atol=0)
        assert torch.equal(values[0], torch.arange(33).to(dtype))


@pytest.mark.parametrize("elements", [1, 2, 3, 1000, 1001])
@pytest.mark.parametrize("size", [2, 3])
def test_all_gather_puts_shards_of_any_length_in_their_places(size, elements):
    whole = torch.arange(float(elements)) + 1
    made = links(size)
    shards = [native.shard_of(elements, rank, size) for rank in range(size)]
    outputs = []
    tickets = []
    for link, (begin, count) in zip(made, shards, strict=True):
        # As in an arena: what a rank brings lies inside the buffer that it gathers into.
        output = torch.full((elements,), float("nan"))
        output[begin : begin + count] = whole[begin : begin + count]
        outputs.append(output)
        tickets.append(link.send("m", "all_gather", output[begin : begin + count], output))
    assert end(tickets) == [""] * size
    for output in outputs:
        assert torch.equal(output, whole)


def test_a_broadcast_names_its_root_by_its_rank_in_the_job():
    made = links(3)
    values = [torch.full((5,), float(rank)) for rank in range(3)]
    tickets = [link.send("m", "broadcast", v, v, 11) for link, v in zip(made, values, strict=True)]
    assert end(tickets) == [""] * 3
    for value in values:
        assert torch.equal(value, torch.ones(5))


def test_messages_travel_one_after_another_in_the_order_in_which_they_were_sent():
    first, second = links(average=False)
    values = [torch.full((1 + 37 * number % 101,), float(number)) for number in range(40)]
    theirs = [1000.0 * value for value in values]
    tickets = [first.send(f"a{i}", "all_reduce", v, v) for i, v in enumerate(values)]
    for number, value in enumerate(theirs):
        assert not has_ended(tickets[number])
        # Names play no part in it, the order does: here all are others than there.
        assert second.send(f"b{number}", "all_reduce", value, value).wait(WAIT_S) == ""
        assert tickets[number].wait(WAIT_S) == ""
        assert torch.equal(values[number], torch.full_like(value, 1001.0 * number))


def test_sending_does_not_wait_for_the_other_ranks():
    first, second = links()
    tickets = sent_by([first] * 100)
    assert not first.wait_idle(0.05)
    tickets += sent_by([second] * 100)
    assert first.wait_idle(WAIT_S)
    assert end(tickets) == [""] * 200


@pytest.mark.parametrize(
    ("op", "give", "take", "root", "reason"),
    [
        ("reduce_scatter", 4, 2, 0, "no reduce_scatter"),
        ("all_reduce", 4, 5, 0, "given 4 elements to send and room for 5"),
        ("broadcast", 4, 4, 2, "does not reach rank 2"),
        ("all_gather", 2, 5, 0, "with 3 of them from this rank, which brings 2"),
    ],
)
def test_what_cannot_travel_is_refused_at_once_and_the_rest_still_does(
    op, give, take, root, reason
):
    first, second = links()
    said = first.send("m", op, torch.ones(give), torch.ones(take), root).wait(0.0)
    assert "the second link" in said
    assert reason in said
    assert end(sent_by([first, second])) == ["", ""]


def test_whole_numbers_are_refused_where_they_would_be_averaged():
    first, second = links()
    ones = torch.ones(3, dtype=torch.int64)
    assert "float16" in first.send("m", "all_reduce", ones, ones).wait(0.0)
    tickets = [
        link.send("n", "broadcast", ones.clone(), ones.clone(), 10) for link in (first, second)
    ]
    assert end(tickets) == ["", ""]


@pytest.mark.parametrize(
    "codes",
    [
        torch.arange(256, dtype=torch.uint8),
        torch.tensor([1, -1, 2**31 - 1, -(2**31)], dtype=torch.int32),
    ],
)
def test_codes_are_summed_modulo_their_range_by_a_link_that_averages(codes):
    made = links()
    outs = [torch.empty_like(codes) for _ in made]
    tickets = [link.send("m", "all_reduce", codes, o) for link, o in zip(made, outs, strict=True)]
    assert end(tickets) == ["", ""]
    for out in outs:
        assert torch.equal(out, codes + codes)


def test_parts_are_left_to_a_mesh():
    first, _ = links()
    for op, counts in (("all_to_all", (2, 1)), ("all_gather", (3, 1))):
        said = first.send("m", op, torch.ones(3), torch.ones(3), 0, (), counts).wait(0.0)
        assert "exchanges no parts" in said


def test_ranks_and_group_have_to_agree():
    (group,) = groups(1)
    with pytest.raises(RuntimeError, match="1 processes was given 2 ranks"):
        native.C10dLink(group, "Gloo on lo", [0, 1])


def test_a_rank_that_leaves_fails_what_waits_for_it_and_all_that_comes_after():
    first, second = links()
    waiting = sent_by([first] * 3)
    assert not first.wait_idle(0.05)
    began_s = time.monotonic()
    del second
    reasons = end(waiting)
    assert time.monotonic() - began_s < 5.0
    assert reasons[0].startswith("Gloo on lo failed: ")
    assert "peer" in reasons[0]
    assert ".cpp" not in reasons[0]
    assert reasons == [reasons[0]] * 3
    assert end(sent_by([first])) == reasons[:1]


def test_a_failure_reaches_the_ranks_that_waited_for_a_living_one():
    """At four ranks not everybody exchanges with the rank that is gone."""
    made = links(4)
    tickets = sent_by(made[:3])
    assert not any(link.wait_idle(0.02) for link in made[:3])
    began_s = time.monotonic()
    del made[3]
    assert all("failed" in reason for reason in end(tickets))
    assert time.monotonic() - began_s < 5.0


def test_a_rank_that_stays_silent_fails_the_message_after_the_limit():
    first, second = links(limit_s=0.5)
    began_s = time.monotonic()
    (reason,) = end(sent_by([first]))
    assert 0.3 < time.monotonic() - began_s < 5.0
    assert "Timed out" in reason
    # The other learns of it too, though it comes in time for itself.
    assert "failed" in end(sent_by([second]))[0]


def test_messages_outlive_their_link():
    for _ in range(10):
        first, second = links(average=False)
        values = [torch.full((5000,), 1.0), torch.full((5000,), 2.0)]
        tickets = [first.send("m", "all_reduce", values[0], values[0])]
        del first  # does not wait: the other rank has not sent its part
        tickets.append(second.send("m", "all_reduce", values[1], values[1]))
        assert end(tickets) == ["", ""]
        assert torch.equal(values[0], torch.full((5000,), 3.0))


def test_no_thread_and_no_connection_stays_behind():
    links()
    before = threads_of_this_process()
    for number in range(10):
        first, second = links()
        tickets = [
            link.send("m", "all_reduce", torch.ones(9), torch.ones(9)) for link in (first, second)
        ]
        if number % 2:
            assert end(tickets) == ["", ""]
        del first, second, tickets
    assert eventually(lambda: threads_of_this_process() <= before)


def one_bucket_plan():
    return native.Plan(
        {
            "period": 1,
            "buffers": 1,
            "links": [
                {
                    "name": "a",
                    "credit_bytes": 0,
                    "credit_messages": 0,
                    "plan_order": True,
                    "fusion": True,
                },
            ],
            "arenas": [{"wire": "float32", "elements": 12}],
            "slots": [{"arena": 0, "begin": 0, "end": 12}],
            "buckets": [{"arena": 0, "begin": 0, "end": 12}],
            "generations": [
                {"bucket": 0, "first_step": 0, "last_step": 0, "apply_step": 0, "gated": False}
            ],
            "tasks": [
                {
                    "generation": 0,
                    "op": "all_reduce",
                    "link": 0,
                    "step": 0,
                    "stage": "backward",
                    "root": 0,
                }
            ],
        }
    )


@pytest.mark.parametrize("drop_first", [True, False])
def test_a_session_may_end_in_a_completion_and_take_its_links_with_it(drop_first):
    """The executor is held by nobody but the message that completes, on the link's own thread."""
    before = threads_of_this_process()
    for _ in range(50):
        made = links()
        sessions = []
        for rank in range(2):
            parameter = torch.zeros(8, requires_grad=True)
            parameter.grad = torch.full((8,), rank + 1.0)
            mine = [made.pop(0)]
            sessions.append(native.Session(one_bucket_plan(), [parameter], mine, "s", rank, 2))
            del mine
        sessions[0].close_step()
        if drop_first:
            del sessions[0]  # its message waits for the other rank
            sessions[0].close_step()
        else:
            sessions[1].close_step()
            del sessions[0]  # its message may be on the way, or just completing
        assert sessions[0].wait(sessions[0].due(), WAIT_S) is None
        sessions.clear()
    assert eventually(lambda: threads_of_this_process() <= before)
