"""Training of real models on several ranks: what counts as the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from scripts.gpu.measure import training


def entry(apart: float = 0.0, **replicas: bool) -> dict[str, Any]:
    made = {arm: {"replicas_equal": replicas.get(arm, True)} for arm in ("stock", "bucket", "late")}
    made["bucket"]["apart"] = apart
    return made


def test_two_ranks_have_to_be_equal_bit_for_bit() -> None:
    assert training.complaints({"a": entry()}, 2) == []
    assert training.complaints({"a": entry(1e-9)}, 2) == ["a: ours and stock are 1e-09 apart"]
    assert training.complaints({"a": entry(1e-9)}, 4) == []
    assert training.complaints({"a": entry(1e-2)}, 4) == ["a: ours and stock are 0.01 apart"]
    assert training.complaints({"a": entry(float("nan"))}, 2) != []


@pytest.mark.parametrize("arm", ["stock", "bucket", "late"])
def test_replicas_have_to_be_equal_always(arm: str) -> None:
    said = training.complaints({"a": entry(), "b": entry(**{arm: False})}, 4)
    assert said == [f"b: replicas of {arm} differ"]
    assert training.headline({"b": entry(**{arm: False})}, 4) == said[0]


def test_headline_says_how_equal() -> None:
    found = {"a": entry(), "b": entry()}
    assert training.headline(found, 2) == (
        "a, b on 2 ranks: ours equals stock bit for bit, all replicas equal"
    )
    assert "within 0.0001" in training.headline(found, 4)


def test_distance_is_relative_to_a_tensors_largest_element() -> None:
    ours, theirs = torch.nn.Linear(2, 1, bias=False), torch.nn.Linear(2, 1, bias=False)
    ours.weight.data.copy_(torch.tensor([[100.0, 1.0]]))
    theirs.weight.data.copy_(torch.tensor([[100.0, 2.0]]))
    assert training.apart(ours, theirs) == pytest.approx(0.01)
    assert training.apart(ours, ours) == 0.0
    broken = torch.nn.Linear(2, 1, bias=False)
    broken.weight.data.fill_(float("nan"))
    assert training.apart(broken, theirs) == float("inf")
    assert training.digest(ours.parameters()) != training.digest(theirs.parameters())
