import signal
import time
from types import SimpleNamespace

import horovod.torch as stock
import pytest

from deft_horovod.errors import WaitTimeoutError
from deft_horovod.runtime.ranks import waits
from deft_horovod.runtime.ranks.waits import Waiter, has_ended, poll_until_done

NAMES = [f"layer{i}.weight" for i in range(8)]


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


class FakePending:
    def __init__(self, progress, missing=(), held_by=""):
        self.bucket = 3
        self.first_step = self.last_step = 41
        self.progress = progress
        self.held_by = held_by
        self.missing_slots = list(missing)
        self.waited_us = 2_500_000


class FakeSession:
    def __init__(self, missing=None, failure=None, pending=None):
        self._missing, self._failure, self._pending = missing, failure, pending

    def wait(self, dues, timeout_s):
        assert timeout_s == 3.0
        return self._missing

    def failure(self):
        return self._failure

    def inspect(self, due):
        assert due == "due 1"
        return self._pending

    def slots_of(self, bucket):
        assert bucket == 3
        return [0, 1, 2, 3, 4, 5, 6]


@pytest.fixture(autouse=True)
def rank(monkeypatch):
    monkeypatch.setattr(stock, "rank", lambda: 2)


def wait(**session):
    Waiter(FakeSession(**session), NAMES, 3.0).wait(["due 0", "due 1"])


def test_a_wait_that_ends_says_nothing():
    wait()


def test_a_failure_of_horovod_is_horovods_own_exception():
    with pytest.raises(stock.HorovodInternalError, match="the peer died"):
        wait(failure="all_reduce of bucket 3: the peer died")
    with pytest.raises(stock.HorovodInternalError, match="the peer died"):
        wait(missing=1, failure="the peer died")


def timeout(pending):
    with pytest.raises(WaitTimeoutError) as caught:
        wait(missing=1, pending=pending)
    message = str(caught.value)
    for part in ("bucket 3", "within 3 s", "rank 2", "step 41", "layer0.weight", "and 2 more"):
        assert part in message
    return message


def test_another_rank_is_missing():
    message = timeout(FakePending("in flight"))
    assert "in Horovod's queue since 2.5 s" in message
    assert "another rank has not sent its part" in message
    assert "DEFT_DEADLINE_S" in message


def test_this_rank_is_missing():
    message = timeout(FakePending("collecting", missing=[4, 6]))
    assert "this rank has not computed the gradients of layer4.weight, layer6.weight" in message
    assert "another rank" not in message


def test_the_plan_holds_it():
    message = timeout(FakePending("held", held_by="credit: 2 of 2 messages in flight on link x"))
    assert "held by credit: 2 of 2 messages in flight on link x" in message


def test_it_is_a_timeout_error_for_those_who_catch_that():
    assert issubclass(WaitTimeoutError, TimeoutError)


def test_a_message_of_horovods_own_is_polled_until_it_is_there(monkeypatch):
    answers = iter([False, False, True])
    monkeypatch.setattr(stock, "poll", lambda handle: handle == 7 and next(answers))
    assert poll_until_done(7, deadline_s=60.0)
    assert next(answers, "all were asked for") == "all were asked for"


def test_or_until_the_deadline(monkeypatch):
    monkeypatch.setattr(stock, "poll", lambda _: False)
    began_s = time.monotonic()
    assert not poll_until_done(7, deadline_s=0.05)
    assert 0.05 <= time.monotonic() - began_s < 5.0


def test_or_until_horovod_has_ended_without_it(monkeypatch):
    monkeypatch.setattr(stock, "poll", lambda _: False)
    monkeypatch.setattr(waits, "native", SimpleNamespace(horovod_has_ended=lambda: True))
    with pytest.raises(stock.HorovodInternalError, match="shut down"):
        poll_until_done(7, deadline_s=60.0)


def test_what_arrives_as_horovod_ends_has_arrived(monkeypatch):
    answers = iter([False, False, True])
    monkeypatch.setattr(stock, "poll", lambda _: next(answers))
    monkeypatch.setattr(waits, "native", SimpleNamespace(horovod_has_ended=lambda: True))
    assert poll_until_done(7, deadline_s=60.0, pause_s=0.2)


def test_polling_leaves_the_core_to_others(monkeypatch):
    monkeypatch.setattr(stock, "poll", lambda _: False)
    began_s = time.thread_time()
    assert not poll_until_done(7, deadline_s=0.5)
    assert time.thread_time() - began_s < 0.25


class Ticket:
    """A message that ends after so many looks at it, well or not."""

    def __init__(self, looks, reason=""):
        self.looks = looks
        self.reason = reason
        self.limits_s = []

    def wait(self, timeout_s):
        self.limits_s.append(timeout_s)
        self.looks -= 1
        if self.looks < 0:
            return self.reason
        time.sleep(timeout_s)
        raise RuntimeError("not yet")


@pytest.mark.parametrize("reason", ["", "a peer died"])
def test_a_message_of_ours_is_waited_for_in_slices(reason):
    ticket = Ticket(3, reason)
    assert has_ended(ticket, 60.0)
    assert ticket.limits_s == [0.1] * 4


def test_and_not_longer_than_the_deadline():
    ticket = Ticket(10**9)
    began_s = time.monotonic()
    assert not has_ended(ticket, 0.25)
    assert 0.25 <= time.monotonic() - began_s < 5.0
    assert ticket.limits_s[:2] == [0.1, 0.1]
    assert all(limit_s <= 0.1 for limit_s in ticket.limits_s)


def test_a_signal_gets_through_between_two_slices():
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    try:
        with pytest.raises(KeyboardInterrupt):
            has_ended(Ticket(10**9), 10.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
