"""Links that behave like the model, between ranks that are threads."""

import logging
import threading
import time

import pytest

from deft_horovod.profile import MEASURED_IN_FLIGHT, LinkCost, LinkProfile, LinkSample
from deft_horovod.runtime.links.message_stream import Allowance
from deft_horovod.runtime.links.probe import describe, probe_links
from tests.unit.support.solo import Solo, as_ranks

pytestmark = pytest.mark.alone


class Ticket:
    def __init__(self, done):
        self._done = done

    def wait(self, timeout_s):
        if not self._done.wait(timeout_s):
            raise RuntimeError("not yet")
        return ""


class Wire:
    """A link between threads: a message leaves once all ranks have sent it, one after the other."""

    def __init__(self, size, alpha_s, beta_s, latency_s=0.0):
        self._size = size
        self._costs = (alpha_s, beta_s)
        self._latency_s = latency_s
        self._lock = threading.Lock()
        self._waiting = {}
        self._free_s = 0.0
        self.sent = [[] for _ in range(size)]

    def end(self, rank):
        return _End(self, rank)

    def send(self, rank, name, size_bytes):
        with self._lock:
            self.sent[rank].append((name, size_bytes))
            done, count = self._waiting.get(name, (threading.Event(), 0))
            self._waiting[name] = (done, count + 1)
            if count + 1 == self._size:
                del self._waiting[name]
                alpha_s, beta_s = self._costs
                now_s = time.monotonic()
                starts_s = max(now_s + self._latency_s, self._free_s)
                self._free_s = starts_s + alpha_s + beta_s * size_bytes
                timer = threading.Timer(self._free_s - now_s, done.set)
                timer.daemon = True
                timer.start()
        return Ticket(done)


class _End:
    def __init__(self, wire, rank):
        self._wire = wire
        self._rank = rank

    def run(self, names, op, inputs, outputs, messages):
        """A name is free again when its message has arrived."""
        flying = {}
        for number in range(messages):
            place = number % len(names)
            if place in flying:
                flying[place].wait(10.0)
            whole = max(inputs[place].numel(), outputs[place].numel())
            size_bytes = whole * inputs[place].element_size() // (1 if op == "all_reduce" else 2)
            flying[place] = self._wire.send(self._rank, names[place], size_bytes)
        return flying[place]


LIMITS = Allowance(budget_s=1.0, deadline_s=10.0)


def probed(size, wires, limits=LIMITS):
    def one(agreement):
        links = {name: wire.end(agreement.rank) for name, wire in wires.items()}
        return probe_links(agreement, links, "deft.0.probe", limits)

    return as_ranks(size, one)


def test_a_link_is_measured_the_same_on_all_ranks():
    wire = Wire(2, 0.003, 1e-8)
    began_s = time.monotonic()
    one, other = probed(2, {"only": wire})
    assert time.monotonic() - began_s < 2.5
    assert one == other
    (link,) = one
    assert link.name == "only"
    assert link.busy_cost is None
    assert len(link.samples) >= 8
    assert link.samples[0].size_bytes == 16
    assert link.cost.alpha_us == pytest.approx(3000, rel=0.6)
    assert link.cost.beta_us_per_byte == pytest.approx(0.01, rel=0.6)
    assert wire.sent[0] == wire.sent[1]
    assert {name.rsplit(".", 2)[0] for name, _ in wire.sent[0]} == {"deft.0.probe.only"}


def test_a_slow_link_takes_no_longer_than_a_fast_one():
    wire = Wire(1, 0.005, 1e-5)
    began_s = time.monotonic()
    ((link,),) = probed(1, {"slow": wire})
    assert time.monotonic() - began_s < 2.5
    assert len(link.samples) >= 8
    assert link.samples[-1].size_bytes < 1 << 16
    assert link.cost.beta_us_per_byte == pytest.approx(10.0, rel=0.6)


def test_a_link_that_is_slow_to_start_gets_large_messages_all_the_same():
    ((link,),) = probed(1, {"far": Wire(1, 0.008, 1e-8)})
    assert link.samples[-1].size_bytes >= 1 << 18
    assert link.cost.alpha_us == pytest.approx(8000, rel=0.6)


def test_messages_are_no_larger_than_what_matters():
    wire = Wire(1, 0.0005, 0.0)
    ((link,),) = probed(1, {"fast": wire}, Allowance(budget_s=1.0, largest_bytes=100_000))
    assert max(size for _, size in wire.sent[0]) <= 100_016
    assert link.samples[-1].size_bytes == pytest.approx(100_000, rel=0.01)


def test_several_links_are_measured_alone_and_at_once():
    wires = {"one": Wire(2, 0.002, 2e-8), "other": Wire(2, 0.001, 1e-7)}
    first, second = probed(2, wires)
    assert first == second
    assert [link.name for link in first] == ["one", "other"]
    for link in first:
        # They do not disturb each other.
        assert link.busy_cost.time_us(1 << 20) == pytest.approx(link.cost.time_us(1 << 20), rel=0.7)
    for wire in wires.values():
        assert wire.sent[0] == wire.sent[1]


def test_messages_in_flight_share_what_one_alone_waits_for():
    """The wire hands a message over 8 ms after it was sent, unless it is busy until then."""
    ((link,),) = probed(1, {"far": Wire(1, 0.0002, 1e-8, latency_s=0.008)}, LIMITS)
    assert link.cost.cycle_us == pytest.approx(8200, rel=0.3)
    assert link.cost.time_us(16) == pytest.approx(8200 / MEASURED_IN_FLIGHT, rel=0.5)
    assert link.cost.with_in_flight(1).time_us(16) == link.cost.cycle_us


def test_the_halves_of_an_all_reduce_are_measured_where_they_are_asked_for():
    def one(agreement):
        links = {"horovod": wire.end(agreement.rank)}
        return probe_links(agreement, links, "deft.0.probe", LIMITS, "horovod")

    wire = Wire(2, 0.001, 2e-8)
    (one_rank,), (other,) = as_ranks(2, one)
    assert one_rank == other
    for half in (one_rank.scatter_cost, one_rank.gather_cost):
        ratio = half.time_us(1 << 20) / one_rank.cost.time_us(1 << 20)
        assert ratio == pytest.approx(0.5, rel=0.4)


def test_without_links_there_is_nothing_to_measure():
    assert probe_links(Solo(), {}, "deft.0.probe", LIMITS) == ()


def test_it_says_what_it_does_and_what_came_of_it(caplog):
    with caplog.at_level(logging.INFO, "deft_horovod"):
        probed(1, {"only": Wire(1, 0.001, 0.0)})
    assert "measuring links (only), up to 1 s each" in caplog.text
    assert "link 'only': " in caplog.text


def test_a_link_in_one_line():
    link = LinkProfile(
        name="x",
        cost=LinkCost(alpha_us=1000.0, beta_us_per_byte=0.02),
        samples=(LinkSample(size_bytes=4096, time_us=1.0),),
        residual=0.051,
    )
    said = "link 'x': 1000 us a message + 50 MB/s (1 sizes up to 4096 bytes, 5% off the line)"
    assert describe(link) == said
    free = link.model_copy(update={"cost": LinkCost(alpha_us=2.0, beta_us_per_byte=0.0)})
    assert describe(free).startswith("link 'x': 2 us a message (")


class Disturbed(Wire):
    """The machine becomes busy while small messages are measured."""

    def send(self, rank, name, size_bytes):
        self._costs = (0.010 if size_bytes >= 4096 else 0.004, 1e-9)
        return super().send(rank, name, size_bytes)


def test_times_of_a_busy_machine_are_not_taken_for_bytes():
    ((link,),) = probed(1, {"busy": Disturbed(1, 0.0, 0.0)}, LIMITS)
    assert link.samples[-1].size_bytes > 1 << 16
    assert link.cost.beta_us_per_byte < 0.1


class Growing(Wire):
    """Every round takes longer than the one before."""

    def send(self, rank, name, size_bytes):
        factor = 1.2 ** (len(self.sent[rank]) / 30)
        self._costs = (0.0002 * factor, 2e-8 * factor)
        return super().send(rank, name, size_bytes)


def rounds_of(wire):
    """Rounds over the sizes, of two large messages each, without the one that warms up. No message
    of the first look is as large."""
    sizes = [size for _, size in wire.sent[0]]
    return sizes.count(max(sizes)) / 2 - 1


def test_a_link_is_measured_until_it_has_said_the_same_twice():
    wire = Wire(1, 0.002, 2e-8)
    began_s = time.monotonic()
    ((link,),) = probed(1, {"steady": wire}, Allowance(budget_s=20.0, largest_bytes=3_000_000))
    assert time.monotonic() - began_s < 10.0
    assert 2 <= rounds_of(wire) <= 4
    assert link.cost.beta_us_per_byte == pytest.approx(0.02, rel=0.3)
    assert link.cost.alpha_us == pytest.approx(2000, rel=0.6)


def test_a_link_that_never_says_the_same_is_not_measured_for_ever():
    wire = Growing(1, 0.0, 0.0)
    probed(1, {"unsteady": wire}, Allowance(budget_s=20.0, largest_bytes=200_000))
    assert rounds_of(wire) == 11
