"""Workers whose gradients travel in a wire format."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch

from scripts.studies.convergence.tasks import Transformer
from scripts.studies.formats import training
from scripts.studies.formats.tasks import TASKS, gpt
from scripts.studies.formats.training import Run, Training, Wire, final_loss


@pytest.fixture
def short(monkeypatch, tmp_path):
    """Tasks of a few steps, with little to validate, and with smaller transformers."""
    monkeypatch.setattr(training, "beginning", partial(training.beginning, folder=tmp_path))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of such small models more of them make each other wait
    for task in TASKS.values():
        few = tuple(part[:16] for part in task.held_out())
        model = Transformer if task.model is gpt else task.model
        fewer = replace(task, model=model, steps=20, held_out=lambda few=few: few)
        monkeypatch.setitem(TASKS, task.name, fewer)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("wire_format", ["f16", "int8", "int4"])
def test_nothing_is_lost_in_a_wire(wire_format, workers):
    torch.manual_seed(0)
    wire = Wire(wire_format, torch.zeros(50, 100), workers)
    produced, applied = torch.zeros(5000), torch.zeros(5000)
    for _ in range(50):
        gradients = [torch.randn(50, 100) for _ in range(workers)]
        produced += torch.stack(gradients).mean(0).flatten()
        applied += wire.average(gradients).flatten()
    left = wire.rest()
    assert left.abs().max() > 0.0
    assert torch.allclose(applied + left, produced, atol=1e-4)


def test_without_feedback_everything_rounded_is_lost():
    torch.manual_seed(0)
    wire = Wire("int4", torch.zeros(50, 100), 4, feedback=False)
    gradients = [torch.randn(50, 100) for _ in range(4)]
    assert torch.equal(wire.average(gradients), wire.average(gradients))
    assert not wire.rest().any()


@pytest.mark.parametrize("task", TASKS)
def test_runs_repeat_bit_for_bit_and_formats_differ(short, task):
    del short
    exact = Training(Run(task, "adamw", 0.002, 1)).train()
    assert len(exact) == 20
    assert Training(Run(task, "adamw", 0.002, 1)).train() == exact
    rounded = Training(Run(task, "adamw", 0.002, 1, "int8")).train()
    assert rounded != exact
    assert rounded[-1] == pytest.approx(exact[-1], rel=0.05)
    assert exact[-1] < exact[0]


def test_passes_add_up_to_the_gradient_of_all_their_batches(monkeypatch):
    task = TASKS["accumulating"]
    assert task.passes > 1
    one = Training(Run(task.name, "sgd", 0.1, 1, workers=1))
    batches = [next(one.streams[0]) for _ in range(task.passes)]
    inputs, targets = (torch.cat(parts) for parts in zip(*batches, strict=True))
    whole = torch.autograd.grad(task.loss(one.model, (inputs, targets)), [*one.parameters.values()])
    monkeypatch.setattr(one.optimizers[0], "step", lambda: None)
    one.streams = [iter(batches)]
    one._step()
    for parameter, gradient in zip(one.parameters.values(), whole, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-6)


def test_the_final_loss_is_a_mean_and_infinite_after_divergence():
    losses = [3.0] * 15 + [1.0, 2.0, 3.0, 4.0, 5.0]
    assert final_loss(losses) == 3.0
    assert final_loss(losses[:-1]) == math.inf
    assert final_loss([*losses[:-1], math.nan]) == math.inf


def test_fine_tuning_begins_where_the_other_training_ended(short, tmp_path):
    del short
    state = training.beginning("gpt")
    assert [path.name for path in tmp_path.iterdir()] == ["gpt.pt"]
    begun = Training(Run("fine-tuning", "adamw", 0.001, 5))
    assert all(torch.equal(begun.parameters[name], state[name]) for name in begun.parameters)


def test_gradients_are_clipped_together(short, monkeypatch):
    del short
    monkeypatch.setitem(TASKS, "gpt", replace(TASKS["gpt"], clip=1e-3))
    run = Training(Run("gpt", "nesterov", 0.1, 1))
    run._step()
    squares = sum(p.grad.square().sum().item() for p in run.parameters.values())
    assert math.sqrt(squares) == pytest.approx(1e-3, rel=1e-3)
