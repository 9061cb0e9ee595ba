import time

import pytest
import torch

from scripts.benchmarks.target import ranks as target_ranks

OPTIONS = {"seed": 1, "optimizer": "adamw", "lr": 0.01, "steps": 10, "schedule": "cosine"}


def train(steps, rank=0, by_s=0.0):
    """The training, and what its last step took."""
    torch.set_num_threads(1)
    training = target_ranks.Training(OPTIONS, rank)
    training.pace.slow_down(by_s)
    for number in range(steps):
        began_s = time.perf_counter()
        training.step(number, training.inner)
    return training, time.perf_counter() - began_s


def test_a_step_takes_so_much_longer_and_its_gradients_are_the_same():
    quick, quick_s = train(2)
    slow, slow_s = train(2, by_s=0.3)
    assert slow_s >= 0.3
    assert quick_s < slow_s
    for one, other in zip(quick.net.parameters(), slow.net.parameters(), strict=True):
        assert torch.equal(one, other)


def test_training_faster_than_the_processor_is_not_slowed_down():
    assert train(2, by_s=-1.0)[1] < 1.0


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


def test_alone_a_step_takes_what_the_processor_needs():
    assert 0.0 < target_ranks.alone_s(OPTIONS) < 1.0


def test_by_itself_it_says_who_starts_it(capsys, monkeypatch):
    monkeypatch.delenv("SCRIPT_OPTIONS", raising=False)
    assert target_ranks.main() == 2
    assert "scripts.benchmarks.target.run" in capsys.readouterr().err


@pytest.mark.parametrize("stage", ["forward", "backward"])
def test_sleep_is_in_both_stages(stage):
    training = target_ranks.Training(OPTIONS, 0)
    training.pace.slow_down(0.3)
    batch = next(training.stream)
    began_s = time.perf_counter()
    loss = training.task.loss(training.net, batch)
    forward_s = time.perf_counter() - began_s
    loss.backward()
    backward_s = time.perf_counter() - began_s - forward_s
    assert {"forward": forward_s > 0.1, "backward": backward_s > 0.2}[stage]
