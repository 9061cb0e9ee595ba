import time

import pytest
import torch

from scripts.benchmarks.target import ranks as target_ranks

OPTIONS = {"seed": 1, "optimizer": "adamw", "lr": 0.01, "steps": 10, "schedule": "cosine"}


def train(steps, rank=0, step_s=0.0):
    """The training, and what its last step took."""
    torch.set_num_threads(1)
    training = target_ranks.Training(OPTIONS, rank)
    training.pace.hold(step_s)
    for number in range(steps):
        began_s = time.perf_counter()
        training.step(number, training.inner)
    return training, time.perf_counter() - began_s


def test_a_step_takes_as_long_as_asked_for_and_its_gradients_are_the_same():
    quick, quick_s = train(2)
    slow, slow_s = train(2, step_s=0.6)
    assert quick_s < 0.5
    assert slow_s >= 0.5  # the processor may have needed less than in the step before
    for one, other in zip(quick.net.parameters(), slow.net.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_processor_works_within_the_time_asked_for():
    training, step_s = train(3, step_s=0.5)
    assert 0.0 < training.pace.busy_s < 0.5
    assert step_s < 0.5 + training.pace.busy_s  # it is not added to the sleep


def test_whoever_waits_makes_a_step_longer():
    training, step_s = train(2, step_s=0.5)
    block = training.net.blocks[1]
    block.register_forward_hook(lambda *_: time.sleep(0.5))
    for number in range(2, 4):
        began_s = time.perf_counter()
        training.step(number, training.inner)
    assert time.perf_counter() - began_s > step_s + 0.3


def test_training_faster_than_the_processor_is_not_slowed_down():
    assert train(2, step_s=1e-6)[1] < 1.0


def test_a_training_for_which_the_processor_was_too_slow_does_not_count():
    options = {"compute_ms": 80.0}
    assert target_ranks.refusal({"busy_ms": 60.0, "options": options}) is None
    refused = target_ranks.refusal({"busy_ms": 79.0, "options": options})
    assert "79 ms" in refused
    assert "--compute-ms" in refused


def test_ranks_begin_alike_and_see_different_data():
    one, other = target_ranks.Training(OPTIONS, 0), target_ranks.Training(OPTIONS, 1)
    for mine, theirs in zip(one.net.parameters(), other.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert not torch.equal(next(one.stream)[0], next(other.stream)[0])


def test_training_lowers_the_loss():
    training = target_ranks.Training({**OPTIONS, "steps": 30}, 0)
    before = training.evaluate()
    for number in range(30):
        training.step(number, training.inner)
    assert training.evaluate() < before - 0.3
    assert training.inner.param_groups[0]["lr"] < OPTIONS["lr"]


def test_a_constant_rate_stays():
    training = target_ranks.Training({**OPTIONS, "schedule": "constant"}, 0)
    training.step(9, training.inner)
    assert training.inner.param_groups[0]["lr"] == OPTIONS["lr"]


def test_by_itself_it_says_who_starts_it(capsys, monkeypatch):
    monkeypatch.delenv("SCRIPT_OPTIONS", raising=False)
    assert target_ranks.main() == 2
    assert "scripts.benchmarks.target.run" in capsys.readouterr().err


@pytest.mark.parametrize("stage", ["forward", "backward"])
def test_sleep_is_in_both_stages(stage):
    training = target_ranks.Training(OPTIONS, 0)
    training.pace.hold(0.4)
    batch = next(training.stream)
    began_s = time.perf_counter()
    loss = training.task.loss(training.net, batch)
    forward_s = time.perf_counter() - began_s
    loss.backward()
    backward_s = time.perf_counter() - began_s - forward_s
    training.pace.end()
    assert {"forward": forward_s > 0.1, "backward": backward_s > 0.2}[stage]


def test_a_loss_that_is_only_asked_for_does_not_sleep():
    training, _ = train(1)
    training.pace.hold(60.0)
    began_s = time.perf_counter()
    training.evaluate()
    assert time.perf_counter() - began_s < 5.0
