"""The script that is profiled trains, in every precision."""

from __future__ import annotations

import pytest
import torch

from scripts.gpu.measure import train as script


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_it_trains(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    models, made, kinds = script.gpu_models, [], []
    make, loss_of = models.make, models.loss_of
    monkeypatch.setattr(models, "make", lambda *a: made.append(make(*a)) or made[-1])

    def noted(model: torch.nn.Module, batch: tuple) -> torch.Tensor:
        kinds.append(torch.is_autocast_enabled("cpu"))
        return loss_of(model, batch)

    monkeypatch.setattr(models, "loss_of", noted)
    words = ["--model", "tiny_gpt2", "--device", "cpu", "--steps", "2", "--precision", precision]
    before = torch.get_float32_matmul_precision()
    try:
        assert script.main(words) == 0
    finally:
        torch.set_float32_matmul_precision(before)
    assert kinds == [precision == "bf16"] * 2
    assert {p.dtype for p in made[0].parameters()} == {torch.float32}
    untouched = make("tiny_gpt2", "cpu")
    for old, new in zip(untouched.parameters(), made[0].parameters(), strict=True):
        assert not torch.equal(old, new)
