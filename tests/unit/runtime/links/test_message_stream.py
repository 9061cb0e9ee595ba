import threading
import time

import horovod.torch as stock
import pytest
import torch

from deft_horovod.errors import WaitTimeoutError
from deft_horovod.runtime.links.message_stream import Allowance, MessageStream


class Ticket:
    def __init__(self, ready_s, failure=""):
        self._ready_s = ready_s
        self._failure = failure

    def wait(self, timeout_s):
        left_s = self._ready_s - time.monotonic()
        if left_s > timeout_s:
            time.sleep(timeout_s)
            raise RuntimeError(f"the message did not finish within {timeout_s} s")
        time.sleep(max(0.0, left_s))
        return self._failure


class SlowLink:
    """One message after the other, each for alpha + beta * bytes."""

    def __init__(self, alpha_s=0.0, beta_s=0.0, failure=""):
        self._costs = (alpha_s, beta_s)
        self._failure = failure
        self._free_s = 0.0
        self.sent = []
        self.parts = []
        self.in_flight_most = 0

    def run(self, names, op, inputs, outputs, messages):
        self.in_flight_most = max(self.in_flight_most, len(names))
        self.parts.append(
            (op, [(a.numel(), b.numel()) for a, b in zip(inputs, outputs, strict=True)])
        )
        alpha_s, beta_s = self._costs
        for number in range(messages):
            name, input_, output = (
                group[number % len(names)] for group in (names, inputs, outputs)
            )
            assert not input_.any()
            size_bytes = max(input_.numel(), output.numel()) * input_.element_size()
            self._free_s = max(time.monotonic(), self._free_s) + alpha_s + beta_s * size_bytes
            self.sent.append((name, size_bytes))
        return Ticket(self._free_s, self._failure)


def test_the_time_is_that_of_one_message():
    stream = MessageStream(SlowLink(0.01, 1e-6), "probe", Allowance())
    stream.reserve(10_000)
    assert stream.run_us(10_000, 4) == pytest.approx(20_000, rel=0.3)


def test_a_few_are_in_flight_and_each_size_has_its_names():
    link = SlowLink(0.002)
    stream = MessageStream(link, "probe", Allowance(in_flight=2))
    stream.reserve(64)
    for _ in range(2):
        stream.run_us(64, 3)
        stream.run_us(16, 1)
    assert link.in_flight_most == 2
    one_round = [("probe.64.0", 64), ("probe.64.1", 64), ("probe.64.0", 64), ("probe.16.0", 16)]
    assert link.sent == 2 * one_round


def test_alone_means_one_in_flight():
    link = SlowLink()
    stream = MessageStream(link, "probe", Allowance())
    stream.reserve(16)
    stream.run_us(16, 3, alone=True)
    assert link.in_flight_most == 1
    assert link.sent == [("probe.16.0", 16)] * 3


@pytest.mark.parametrize(("rank", "part"), [(0, 4), (1, 3), (2, 3)])
def test_of_the_halves_of_an_all_reduce_every_rank_has_its_part(rank, part):
    link = SlowLink()
    allowance = Allowance(rank=rank, size=3)
    for op in ("reduce_scatter", "all_gather"):
        stream = MessageStream(link, op, allowance, op)
        stream.reserve(40)
        stream.run_us(40, 1)
    assert link.parts == [("reduce_scatter", [(10, part)]), ("all_gather", [(part, 10)])]


def test_memory_grows_with_the_largest_message():
    link = SlowLink()
    stream = MessageStream(link, "probe", Allowance())
    for size_bytes in (16, 4096, 64):
        stream.reserve(size_bytes)
        stream.run_us(size_bytes, 2)
    assert [size for _, size in link.sent] == [16, 16, 4096, 4096, 64, 64]


def test_a_message_that_never_arrives_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setattr(stock, "rank", lambda: 3)
    stream = MessageStream(SlowLink(100.0), "probe", Allowance(deadline_s=0.2))
    stream.reserve(16)
    with pytest.raises(WaitTimeoutError, match=r"such as 'probe.16.0' did not arrive[\s\S]*rank 3"):
        stream.run_us(16, 1)


def test_a_failure_is_horovod_s():
    stream = MessageStream(SlowLink(failure="a peer died"), "probe", Allowance())
    stream.reserve(16)
    with pytest.raises(stock.HorovodInternalError, match="a peer died"):
        stream.run_us(16, 1)


def test_who_waits_on_another_thread_can_be_stopped(monkeypatch):
    monkeypatch.setattr(stock, "rank", lambda: 0)
    stream = MessageStream(SlowLink(100.0), "probe", Allowance())
    stream.reserve(16)
    errors = []

    def run():
        try:
            stream.run_us(16, 1)
        except WaitTimeoutError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    stream.stop()
    thread.join(20)
    assert len(errors) == 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_memory_can_be_that_of_a_gpu():
    link = SlowLink()
    stream = MessageStream(link, "probe", Allowance(device=torch.device("cuda")))
    stream.reserve(1024)
    stream.run_us(1024, 1)
    assert link.sent == [("probe.1024.0", 1024)]
