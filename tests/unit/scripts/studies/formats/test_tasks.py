"""What is trained on is not what is validated on."""

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


def test_crops_for_training_and_validation_have_no_pixel_columns_in_common(monkeypatch):
    from scripts.studies.formats import tasks

    columns = torch.arange(640.0).repeat(2, 3, 427, 1)
    monkeypatch.setattr(tasks, "_photographs", lambda: columns)
    crops, targets = tasks._crops(500, torch.Generator().manual_seed(0), range(48))
    assert (crops % 64).max() < 48
    held, _ = tasks._crops(500, torch.Generator().manual_seed(0), range(48, 64))
    assert (held % 64).min() >= 48
    assert set(targets.tolist()) == set(range(8))
    assert crops.shape == (500, 3, 12, 12)
