"""Each model learns from its data, the same for every arm."""

from __future__ import annotations

import pytest
import torch

from scripts.benchmarks.real_models.models import MODELS, Size

TINY = Size(width=32, layers=1, length=16, batch=4)


@pytest.mark.parametrize("name", MODELS)
def test_it_learns_and_batches_are_those_of_the_seed(name: str) -> None:
    torch.manual_seed(0)
    subject = MODELS[name](TINY)
    data, again = subject.data(1), subject.data(1)
    optimizer = torch.optim.AdamW(subject.model.parameters(), lr=1e-3)
    first = next(data)
    before = subject.loss(subject.model, first)
    assert float(before.detach()) > 1.0
    for _ in range(8):
        optimizer.zero_grad()
        subject.loss(subject.model, first).backward()
        optimizer.step()
    assert all(p.grad is not None for p in subject.model.parameters())
    assert float(subject.loss(subject.model, first).detach()) < float(before.detach())
    assert torch.equal(torch.as_tensor(first[0]), torch.as_tensor(next(again)[0]))
    with torch.no_grad():
        assert torch.isfinite(subject.loss(subject.model, subject.held_out))
