import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.tasks import TASKS, batches
from scripts.studies.convergence.training import (
    OPTIMIZERS,
    Run,
    Training,
    first_bytes,
    first_late,
    rate_share,
)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_parts_of_a_task_are_parameters_of_its_model(task):
    names = [name for name, _ in task.model().named_parameters()]
    for prefix in task.first:
        assert any(name.startswith(prefix) for name in names)
    (inputs, targets), (held_inputs, _) = task.data()
    assert len(inputs) == len(targets) > 4 * task.batch
    assert len(held_inputs) > 100


def test_workers_see_different_data_and_each_sample_once_in_a_pass():
    data = torch.arange(10.0), torch.arange(10)
    stream = batches(data, 3, torch.Generator().manual_seed(1))
    seen = torch.cat([next(stream)[1] for _ in range(3)])
    assert len(set(seen.tolist())) == 9


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_run_learns_and_is_the_same_again(optimizer):
    run = Run(
        "mlp", optimizer, 0.02, Arm(-1, 1, 2, "local", warmup=5, partial=True), 1, stretch=0.1
    )
    outcome = Training(run).train()
    assert outcome.losses[-1][1] < outcome.losses[0][1]
    assert Training(run).train().to_data() == outcome.to_data()
    for values in outcome.statistics.values():
        assert len(values) == 10


def test_synchronous_workers_are_one_worker_with_all_their_data():
    """The average of equal batches' gradients is the gradient of all samples."""
    training = Training(Run("mlp", "sgd", 0.1, Arm(), 1, workers=2, stretch=0.02))
    twin = Training(Run("mlp", "sgd", 0.1, Arm(), 1, workers=2, stretch=0.02))
    training.train()
    optimizer = torch.optim.SGD(twin.model.parameters(), lr=0.1, momentum=0.9)
    for step in range(twin.steps):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * rate_share(step / twin.steps)
        both = [next(stream) for stream in twin.streams]
        whole = tuple(torch.cat(parts) for parts in zip(*both, strict=True))
        optimizer.zero_grad()
        twin.task.loss(twin.model, whole).backward()
        optimizer.step()
    for mine, theirs in zip(training.model.parameters(), twin.model.parameters(), strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_the_learning_rate_rises_and_falls():
    shares = [rate_share(done / 100) for done in range(100)]
    top = shares.index(max(shares))
    assert shares[: top + 1] == sorted(shares[: top + 1])
    assert shares[top:] == sorted(shares[top:], reverse=True)
    assert max(shares) == pytest.approx(1.0)
    assert 0.1 <= shares[-1] < 0.11


def test_late_updates_wait_for_the_rate_to_fall():
    for steps in (300, 500):
        begin = first_late(Arm(-1, below=0.5), steps)
        assert rate_share(begin / steps) <= 0.5 < rate_share((begin - 1) / steps)
        assert 0.5 < begin / steps < 0.6
    assert first_late(Arm(-1), 300) == Arm.warmup
    assert first_late(Arm(-1, warmup=250, below=0.5), 300) == 250
    assert first_late(Arm(-1, below=0.01), 300) == 300, "it never falls so far"


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.floats(0.0, 1.0))
def test_a_share_of_the_bytes_is_not_exceeded_and_leaves_out_only_what_does_not_fit(sizes, share):
    tensors = [torch.zeros(size) for size in sizes]
    found = first_bytes(tensors, share)
    taken, limit = sum(p.numel() for p in found), share * sum(sizes)
    assert taken <= limit
    left_out = [p.numel() for p in tensors if not any(p is one for one in found)]
    assert all(taken + size > limit for size in left_out)


def test_only_that_share_is_late():
    run = Run("mlp", "sgd", 0.1, Arm(-1, 1, 1, "local", below=0.95, share=0.5), seed=1)
    training = Training(run)
    names = {name for name, p in training.parameters.items() if any(p is q for q in training.late)}
    assert "1.weight" in names, "what forward uses first"
    late = sum(p.numel() for p in training.late)
    assert 0.0 < late <= 0.5 * sum(p.numel() for p in training.parameters.values())
