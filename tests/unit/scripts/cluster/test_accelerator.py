"""The emulated accelerator: its clock, its gradients, its patience."""

import time
from statistics import median

import pytest
import torch

from scripts.cluster import accelerator, workloads

MS = 1e-3


class World:
    """Time that passes only when somebody says so; sleeps overshoot."""

    def __init__(self, overshoot_s: float = 0.0) -> None:
        self.now_s = 100.0
        self.sleeps = 0
        self.overshoot_s = overshoot_s
        self.slept_s: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds + self.overshoot_s
        self.sleeps += 1
        self.slept_s.append(seconds)

    def work(self, seconds: float) -> None:
        self.now_s += seconds

    def wait(self, seconds: float) -> None:
        """For communication: the thread lets go of its core."""
        self.now_s += seconds
        self.sleeps += 1


def clock_of(world: World) -> object:
    return accelerator.DeviceClock(lambda: world.now_s, world.sleep, lambda: world.sleeps)


def run(clock: object, seconds: float) -> None:
    clock.begin(seconds)
    clock.end()


def test_overshoot_and_small_delays_do_not_add_up() -> None:
    world = World(overshoot_s=0.1 * MS)
    clock = clock_of(world)
    for _ in range(100):
        run(clock, 2 * MS)
        world.work(0.5 * MS)
    assert world.now_s - 100.0 == pytest.approx(200 * MS, abs=0.7 * MS)


def test_a_late_host_costs_its_delay() -> None:
    world = World()
    clock = clock_of(world)
    run(clock, 2 * MS)
    world.work(5 * MS)
    run(clock, 2 * MS)
    assert world.now_s - 100.0 == pytest.approx(9 * MS)


def test_waiting_for_communication_is_never_made_up_for() -> None:
    world = World()
    clock = clock_of(world)
    for _ in range(20):
        run(clock, 2 * MS)
        world.wait(1 * MS)
    assert world.now_s - 100.0 == pytest.approx(60 * MS)


def test_a_short_sleep_in_between_is_no_wait() -> None:
    world = World()
    clock = clock_of(world)
    for _ in range(20):
        run(clock, 2 * MS)
        world.wait(0.05 * MS)
    assert world.now_s - 100.0 == pytest.approx(40 * MS, abs=0.1 * MS)


def test_tiny_operations_are_slept_together() -> None:
    world = World()
    clock = clock_of(world)
    for _ in range(1000):
        run(clock, 0.01 * MS)
    assert world.now_s - 100.0 == pytest.approx(10 * MS, abs=0.1 * MS)
    assert len(world.slept_s) <= 200


def test_restart_forgets_the_past() -> None:
    world = World()
    clock = clock_of(world)
    world.work(1 * MS)
    clock.restart()
    run(clock, 2 * MS)
    assert world.now_s - 100.0 == pytest.approx(3 * MS)


@pytest.fixture
def model() -> torch.nn.Module:
    return accelerator.SleepingModel(workloads.WORKLOADS["gpt2"]().scaled(100_000), 0.02)


def test_gradients_have_the_values_asked_for(model: torch.nn.Module) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for step in range(3):
        model.set_gradient(10.0 * step)
        optimizer.zero_grad()
        model().backward()
        for number, parameter in enumerate(model.parameters()):
            assert bool((parameter.grad == 10.0 * step + number).all())
        optimizer.step()
    for number, parameter in enumerate(model.parameters()):
        assert bool((parameter == -(30.0 + 3 * number)).all())


def test_autograd_copies_no_gradient(model: torch.nn.Module) -> None:
    places = []
    for _ in range(3):
        model.zero_grad()
        model().backward()
        places.append([parameter.grad.data_ptr() for parameter in model.parameters()])
    assert places[0] == places[1] == places[2]


def test_gradients_arrive_last_layer_first_and_the_tied_one_last(model: torch.nn.Module) -> None:
    seen: list[str] = []
    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: seen.append(name))
    model().backward()
    assert len(seen) == len(set(seen)) == len(list(model.parameters()))
    assert seen[0].startswith("norm.")
    assert {name.split(".")[0] for name in seen[-2:]} == {"embedding"}


def test_square_matrices_have_nearly_the_elements_of_rows(model: torch.nn.Module) -> None:
    workload = workloads.WORKLOADS["gpt2"]().scaled(100_000)
    square = accelerator.SleepingModel(workload, 0.02, square=True)
    for row, matrix in zip(model.parameters(), square.parameters(), strict=True):
        assert row.dim() == matrix.dim()
        assert row.numel() - matrix.shape[0] < matrix.numel() <= row.numel()
        assert row.dim() == 1 or 1.0 <= matrix.shape[1] / matrix.shape[0] <= 3.0
    square().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in square.parameters())


def test_an_update_of_the_device_costs_the_host_nothing(model: torch.nn.Module) -> None:
    model.set_gradient(1.0)
    model().backward()
    accelerator.DeviceSgd(model.parameters(), lr=1.0).step()
    assert all(bool((parameter == 0).all()) for parameter in model.parameters())


@pytest.mark.parametrize("name", ["vgg19", "resnet101", "gpt2"])
def test_a_step_takes_the_time_it_was_given(name: str) -> None:
    model = accelerator.SleepingModel(workloads.WORKLOADS[name]().scaled(1e6), 0.2)
    times_s = []
    for _ in range(4):
        began_s = time.perf_counter()
        model().backward()
        times_s.append(time.perf_counter() - began_s)
    # 200 on a machine with nothing else to do; the upper bound is for one that is busy.
    assert min(times_s) > 0.197
    assert median(times_s) < 0.3
