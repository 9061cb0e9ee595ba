import time

import pytest
import torch

from scripts.benchmarks.target import ranks as target_ranks

OPTIONS = {"seed": 1, "optimizer": "adamw", "lr": 0.01, "steps": 10, "schedule": "cosine"}


def train(steps, rank=0, layers_s=0.0):
    """The training, and what its last step took."""
    torch.set_num_threads(1)
    training = target_ranks.Training(OPTIONS, rank)
    training.pace.take(layers_s)
    for number in range(steps):
        began_s = time.perf_counter()
        training.step(number, training.inner)
    return training, time.perf_counter() - began_s


def test_a_step_takes_as_long_as_its_layers_are_given_and_its_gradients_are_the_same():
    quick, quick_s = train(2)
    slow, slow_s = train(2, layers_s=quick_s + 0.3)
    assert slow_s >= quick_s + 0.3
    for one, other in zip(quick.net.parameters(), slow.net.parameters(), strict=True):
        assert torch.equal(one, other)


def test_layers_that_are_given_no_time_take_as_long_as_the_processor_needs():
    assert train(2, layers_s=-1.0)[1] < 1.0


def test_ranks_begin_alike_and_see_different_data():
    one, other = target_ranks.Training(OPTIONS, 0), target_ranks.Training(OPTIONS, 1)
    for mine, theirs in zip(one.net.parameters(), other.net.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert not torch.equal(next(one.stream)[0], next(other.stream)[0])


def test_training_lowers_the_loss():
    training = target_ranks.Training({**OPTIONS, "steps": 30}, 0)
    before = training.loss_of(training.parameters())
    for number in range(30):
        training.step(number, training.inner)
    assert training.loss_of(training.parameters()) < before - 0.3
    assert training.inner.param_groups[0]["lr"] < OPTIONS["lr"]


def test_a_constant_rate_stays():
    training = target_ranks.Training({**OPTIONS, "schedule": "constant"}, 0)
    training.step(9, training.inner)
    assert training.inner.param_groups[0]["lr"] == OPTIONS["lr"]


def rehearsal():
    torch.set_num_threads(1)
    return target_ranks.Rehearsal(OPTIONS, lambda: None)


def test_a_rehearsal_finds_out_how_long_layers_take_for_a_step_to_take_as_long_as_wanted():
    found = rehearsal()
    alone_s = found.step_s()
    assert found.layers_s == 0.0
    found.settle(3.0 * alone_s)
    assert 0.0 < found.layers_s < 3.0 * alone_s
    assert found.step_s() > 1.5 * alone_s


def test_a_rehearsal_cannot_make_the_processor_faster():
    found = rehearsal()
    found.settle(1e-6)
    assert found.layers_s == 0.0
    assert found.step_s() > 1e-6


def test_a_rehearsal_leaves_the_training_alone():
    without, _ = train(2)
    rehearsal().step_s()
    after, _ = train(2)
    for mine, theirs in zip(without.parameters(), after.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def course(every, layers_s=0.0, computed_s=time.thread_time):
    torch.set_num_threads(1)
    training = target_ranks.Training(OPTIONS, 0, computed_s)
    training.pace.take(layers_s)
    options = {"every": every, "arm": {"stock": True}}
    return target_ranks.run(training, lambda training: training.inner, options)


def test_validation_does_not_count_as_time(monkeypatch):
    def slow_loss_of(self, _):
        time.sleep(0.2)
        return 1.0

    monkeypatch.setattr(target_ranks.Training, "loss_of", slow_loss_of)
    began_s = time.perf_counter()
    rows, _ = course(every=1)
    slept_s = 0.2 * OPTIONS["steps"]
    assert rows[-1][1] <= time.perf_counter() - began_s - slept_s


def test_only_steps_sleep_and_validation_does_not(monkeypatch):
    slept_s = []
    monkeypatch.setattr(target_ranks.time, "sleep", slept_s.append)
    course(every=1, layers_s=30.0, computed_s=lambda: 0.0)
    assert sum(slept_s) == pytest.approx(30.0 * OPTIONS["steps"])


def test_each_loss_is_that_of_its_step():
    rows, _ = course(every=4)
    assert [step for step, _, _ in rows] == [4, 8, 10]
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)
    for step, _, loss in rows:
        stopped, _ = train(step)
        assert loss == stopped.loss_of(stopped.parameters())


def test_wrapping_the_optimizer_counts_as_time():
    def wrap(training):
        time.sleep(0.5)
        return training.inner

    training = target_ranks.Training({**OPTIONS, "steps": 1}, 0)
    rows, _ = target_ranks.run(training, wrap, {"every": 1, "arm": {"stock": True}})
    assert rows[0][1] >= 0.5


def test_what_is_late_arrives_within_the_time():
    class Late:
        def __init__(self, inner):
            self.inner, self.zero_grad, self.step = inner, inner.zero_grad, inner.step
            self.flushed = 0

        def flush(self):
            self.flushed += 1
            time.sleep(0.5)

    training = target_ranks.Training({**OPTIONS, "steps": 2}, 0)
    options = {"every": 1, "arm": {"stock": False}}
    rows, optimizer = target_ranks.run(training, lambda given: Late(given.inner), options)
    assert optimizer.flushed == 1
    assert rows[1][1] - rows[0][1] >= 0.5


@pytest.mark.parametrize("after_ms", [80.0, 83.0, 77.0])
def test_a_training_counts_whose_pace_was_kept(after_ms):
    found = {"alone_ms": [80.0, after_ms], "options": {"compute_ms": 80.0}}
    assert target_ranks.refusal(found) is None


@pytest.mark.parametrize("after_ms", [90.0, 70.0])
def test_a_training_does_not_count_whose_pace_changed(after_ms):
    found = {"alone_ms": [80.0, after_ms], "options": {"compute_ms": 80.0}}
    refused = target_ranks.refusal(found)
    assert f"{after_ms:.0f} ms" in refused
    assert "80 ms" in refused
    assert "quiet" in refused


def test_by_itself_it_says_who_starts_it(capsys, monkeypatch):
    monkeypatch.delenv("SCRIPT_OPTIONS", raising=False)
    assert target_ranks.main() == 2
    assert "scripts.benchmarks.target.run" in capsys.readouterr().err
