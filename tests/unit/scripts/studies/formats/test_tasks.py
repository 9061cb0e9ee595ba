"""Batches of the tasks."""

import torch

from scripts.studies.formats.tasks import TASKS


def test_batches_have_the_size_asked_for_and_validation_stays_the_same():
    for task in TASKS.values():
        stream = task.stream(torch.Generator().manual_seed(3))
        inputs, targets = next(stream)
        assert len(inputs) == len(targets) == task.batch
        assert not torch.equal(next(stream)[0], inputs)
        assert torch.equal(task.held_out()[0], task.held_out()[0])
        model = task.model()
        assert torch.isfinite(task.loss(model, (inputs, targets)))


def test_fine_tuning_goes_on_with_a_model_that_has_the_same_parameters():
    for task in TASKS.values():
        if task.begins_from:
            before = TASKS[task.begins_from].model().state_dict()
            assert {k: v.shape for k, v in task.model().state_dict().items()} == {
                k: v.shape for k, v in before.items()
            }
