import importlib
import itertools
import time

import pytest
import torch

from scripts.benchmarks.target import pace as target_pace
from scripts.benchmarks.target import ranks as target_ranks

OPTIONS = {"seed": 1, "optimizer": "adamw", "lr": 0.01, "steps": 10, "schedule": "constant"}


def sleeps(monkeypatch, layers_s, computed_s):
    """What a step sleeps, by this clock of computing."""
    slept_s = []
    training = target_ranks.Training(OPTIONS, 0, computed_s)
    training.pace.take(layers_s)
    monkeypatch.setattr(target_pace.time, "sleep", slept_s.append)
    training.step(0, training.inner)
    return slept_s


def test_what_the_processor_needed_of_a_part_is_not_slept(monkeypatch):
    ticks = itertools.count()  # a second from each look to the next
    slept_s = sleeps(monkeypatch, 210.0, lambda: float(next(ticks)))
    assert slept_s == pytest.approx([9.0] * 7 + [19.0] * 7)


def test_a_part_that_the_processor_needs_longer_for_has_no_sleep(monkeypatch):
    ticks = itertools.count()
    # A part of forward takes 2/3 of a second, one of backward 4/3.
    slept_s = sleeps(monkeypatch, 14.0, lambda: float(next(ticks)))
    assert slept_s == pytest.approx([1.0 / 3.0] * 7)


def test_what_comes_between_steps_is_not_of_layers(monkeypatch):
    now_s = [0.0]
    training = target_ranks.Training(OPTIONS, 0, lambda: now_s[0])
    training.pace.take(21.0)
    slept_s = []
    monkeypatch.setattr(target_pace.time, "sleep", slept_s.append)
    for number in range(2):
        training.step(number, training.inner)
        now_s[0] += 100.0
    assert sum(slept_s) == pytest.approx(42.0)


def spin(seconds):
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        pass


@pytest.mark.parametrize("rule", ["adam", "sgd"])
def test_computing_is_without_updates(monkeypatch, rule):
    for name in ("adam", "sgd"):  # what it changes is changed back after the test
        of = importlib.import_module(f"torch.optim.{name}")
        monkeypatch.setattr(of, name, lambda *_, **__: spin(0.05))
    computing = target_pace.Computing()
    computing.leave_out_updates()
    parameter = torch.nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    optimizer = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD}[rule]([parameter], lr=0.1)
    began_s, computed_s = time.thread_time(), computing()
    optimizer.step()
    spin(0.02)
    assert time.thread_time() - began_s >= 0.07
    assert 0.02 <= computing() - computed_s <= time.thread_time() - began_s - 0.05


@pytest.mark.parametrize("stage", ["forward", "backward"])
def test_sleep_is_in_both_stages(stage):
    training = target_ranks.Training(OPTIONS, 0)
    training.pace.take(0.3)
    batch = next(training.stream)
    training.pace.begin_step()
    began_s = time.perf_counter()
    loss = training.task.loss(training.net, batch)
    forward_s = time.perf_counter() - began_s
    loss.backward()
    backward_s = time.perf_counter() - began_s - forward_s
    assert {"forward": forward_s > 0.1, "backward": backward_s > 0.2}[stage]
