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


def test_crops_lie_in_the_band_that_is_to_be_found(monkeypatch):
    from scripts.studies.formats import tasks

    rows = torch.arange(427.0)[:, None].expand(427, 640).expand(2, 3, 427, 640)
    monkeypatch.setattr(tasks, "_photographs", lambda: rows)
    crops, targets = tasks._crops(500, torch.Generator().manual_seed(0))
    assert crops.shape == (500, 3, 12, 12)
    assert set(targets.tolist()) == set(range(8))
    bands = crops.flatten(1) // (427 // 4)
    assert torch.equal(bands.min(1).values.long(), targets % 4)
    assert torch.equal(bands.max(1).values.long(), targets % 4)
