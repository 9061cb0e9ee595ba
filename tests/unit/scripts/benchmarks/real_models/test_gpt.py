"""The model learns from the text, and its output layer is the embedding."""

from __future__ import annotations

import torch

from scripts.benchmarks.real_models.gpt import BYTES, Gpt, batches, loss_of, text, windows_of

LENGTH = 16


def test_the_text_is_real_and_windows_share_none_of_it() -> None:
    assert len(text()) > 200_000
    assert int(text().max()) < BYTES
    train, held = windows_of(LENGTH)
    assert train.shape[1] == held.shape[1] == LENGTH + 1
    assert len(train) > 10 * len(held)
    assert len(train) + len(held) == len(text()) // (LENGTH + 1)


def test_batches_are_those_of_the_seed() -> None:
    train, _ = windows_of(LENGTH)
    first, again, other = (next(batches(train, 4, seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_few_steps_teach_it_something() -> None:
    torch.manual_seed(0)
    model = Gpt(width=32, layers=1, length=LENGTH)
    assert "tokens.weight" in dict(model.named_parameters())
    assert not any("output" in name for name, _ in model.named_parameters())
    train, held = windows_of(LENGTH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    before = float(loss_of(model, held[:200]).detach())
    data = batches(train, 32, 0)
    for _ in range(40):
        optimizer.zero_grad()
        loss_of(model, next(data)).backward()
        optimizer.step()
    assert float(loss_of(model, held[:200]).detach()) < before - 0.5


def test_no_byte_sees_those_behind_it() -> None:
    torch.manual_seed(0)
    model = Gpt(width=32, layers=2, length=LENGTH)
    one = torch.randint(BYTES, (1, LENGTH))
    other = one.clone()
    other[0, -1] = (other[0, -1] + 1) % BYTES
    assert torch.allclose(model(one)[0, :-1], model(other)[0, :-1], atol=1e-6)
