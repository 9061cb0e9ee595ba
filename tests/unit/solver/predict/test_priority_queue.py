from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.plan import Link
from deft_horovod.profile import LinkCost
from deft_horovod.solver.predict.priority_queue import QueuedMessage, departures

MESSAGES = st.lists(
    st.builds(
        QueuedMessage,
        bytes=st.integers(16, 5000),
        ready_us=st.floats(0, 1e4),
        priority=st.sampled_from([-1.0, 0.0, 1.0, 2.5, 7.0]),
    ),
    max_size=40,
)
LINKS = st.builds(
    Link,
    name=st.just("link"),
    credit_bytes=st.sampled_from([0, 100, 4000, 20_000]),
    credit_messages=st.sampled_from([0, 1, 4]),
)
COSTS = st.builds(
    LinkCost, alpha_us=st.sampled_from([0.0, 50.0]), beta_us_per_byte=st.sampled_from([0.0, 0.1])
)


def in_flight_at(done, moment_us, before):
    """Departures before the given one that have left but not arrived at that moment."""
    return [d for d in done[:before] if d.arrives_us > moment_us]


@given(MESSAGES, LINKS, COSTS)
def test_it_is_a_schedule(messages, link, cost):
    done = departures(messages, link, cost)
    assert done == departures(messages, link, cost)
    assert sorted(d.message for d in done) == list(range(len(messages)))
    free_us = 0.0
    for place, departure in enumerate(done):
        message = messages[departure.message]
        assert departure.leaves_us >= message.ready_us
        assert place == 0 or departure.leaves_us >= done[place - 1].leaves_us
        start_us = max(free_us, departure.leaves_us)
        assert departure.arrives_us == start_us + cost.time_us(message.bytes)
        free_us = departure.arrives_us
        flying = in_flight_at(done, departure.leaves_us, place)
        if link.credit_messages:
            assert len(flying) < link.credit_messages
        if link.credit_bytes and flying:
            total = sum(messages[d.message].bytes for d in flying) + message.bytes
            assert total <= link.credit_bytes


@given(MESSAGES, LINKS, COSTS)
def test_none_leaves_before_a_more_urgent_one_that_is_ready(messages, link, cost):
    done = departures(messages, link, cost)
    for place, departure in enumerate(done):
        mine = (messages[departure.message].priority, departure.message)
        for later in done[place + 1 :]:
            message = messages[later.message]
            if message.ready_us <= departure.leaves_us:
                assert (message.priority, later.message) > mine


@given(MESSAGES, LINKS, COSTS)
def test_none_waits_without_a_reason(messages, link, cost):
    """Whoever leaves later than ready leaves when an arrival has given credit back."""
    done = departures(messages, link, cost)
    arrivals = {d.arrives_us for d in done}
    for departure in done:
        ready_us = messages[departure.message].ready_us
        assert departure.leaves_us == ready_us or departure.leaves_us in arrivals


def test_an_urgent_message_overtakes_what_has_not_left():
    messages = [
        QueuedMessage(bytes=100, ready_us=0.0, priority=9.0),
        QueuedMessage(bytes=100, ready_us=0.0, priority=8.0),
        QueuedMessage(bytes=100, ready_us=50.0, priority=0.0),
    ]
    cost = LinkCost(alpha_us=0.0, beta_us_per_byte=1.0)
    one_by_one = departures(messages, Link(name="link", credit_messages=1), cost)
    assert [d.message for d in one_by_one] == [1, 2, 0]
    assert [d.arrives_us for d in one_by_one] == [100.0, 200.0, 300.0]
    unlimited = departures(messages, Link(name="link"), cost)
    assert [d.message for d in unlimited] == [1, 0, 2]


def test_a_message_larger_than_the_credit_travels_alone():
    messages = [QueuedMessage(bytes=1000, ready_us=0.0, priority=float(i)) for i in range(2)]
    cost = LinkCost(alpha_us=10.0, beta_us_per_byte=0.0)
    done = departures(messages, Link(name="link", credit_bytes=100), cost)
    assert [d.leaves_us for d in done] == [0.0, 10.0]
