import time

import pytest
import torch

from deft_horovod.runtime.measure.timestamps import DeviceClock, HostClock, clock_for


class Event:
    """Of a device that does everything at once; times are in milliseconds, as CUDA has them."""

    def __init__(self, ms):
        self.ms = ms
        self.waited_for = False

    def elapsed_time(self, later):
        return later.ms - self.ms

    def synchronize(self):
        self.waited_for = True


def test_the_host_measures_what_it_does():
    clock = HostClock()
    before = clock.now()
    time.sleep(0.01)
    after = clock.now()
    clock.wait_for(after)
    assert 10_000 <= clock.between_us(before, after) < 1_000_000
    assert clock.between_us(after, before) == 0.0
    assert clock.since_us(before, [before, after]).tolist() == [0.0, float(after - before)]
    assert clock.since_us(before, []).shape == (0,)


def test_a_device_measures_between_its_events():
    asked = []
    times = iter([1.0, 3.5, 2.0])

    def leave(device):
        asked.append(device)
        return Event(next(times))

    device = torch.device("cuda", 1)
    clock = DeviceClock(device, leave)
    first, second, third = clock.now(), clock.now(), clock.now()
    assert asked == [device] * 3
    assert clock.between_us(first, second) == 2500.0
    assert clock.between_us(second, third) == 0.0
    assert clock.since_us(first, [second, third]).tolist() == [2500.0, 1000.0]
    clock.wait_for(second)
    assert second.waited_for
    assert not third.waited_for


def test_parameters_on_the_host_are_timed_there():
    assert isinstance(clock_for([torch.ones(1)]), HostClock)
    assert isinstance(clock_for([]), HostClock)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_the_time_is_that_of_the_gpu():
    tensor = torch.ones(2048, 2048, device="cuda")
    clock = clock_for([torch.ones(1), tensor])
    (tensor @ tensor).sum().item()
    before = clock.now()
    for _ in range(20):
        tensor = tensor @ tensor * 1e-4
    after = clock.now()
    clock.wait_for(after)
    assert clock.device == tensor.device
    assert clock.between_us(before, after) > 100.0
