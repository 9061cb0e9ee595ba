"""Training of real models on several ranks: what counts as the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from scripts.gpu.measure import training


def entry(apart: float = 0.0, groups: float = 0.0, **replicas: bool) -> dict[str, Any]:
    made: dict[str, Any] = {
        arm: {"replicas_equal": replicas.get(arm, True)} for arm in training.ARMS
    }
    made["bucket"]["apart"], made["grouped"]["apart"] = apart, groups
    return made


def test_two_ranks_have_to_be_equal_bit_for_bit() -> None:
    assert training.complaints({"a": entry()}, 2) == []
    said = ["a: ours and stock are 1e-09 apart, 0 may be"]
    assert training.complaints({"a": entry(1e-9)}, 2) == said
    assert training.complaints({"a": entry(1e-9, 1.0)}, 2) == said
    assert training.complaints({"a": entry(float("nan"))}, 2) != []


def test_more_ranks_may_be_as_far_from_stock_as_its_own_groups_are() -> None:
    assert training.complaints({"a": entry(1e-9)}, 4) == []
    assert training.complaints({"a": entry(0.02, 0.01)}, 4) == []
    said = ["a: ours and stock are 0.04 apart, 0.03 may be"]
    assert training.complaints({"a": entry(0.04, 0.01)}, 4) == said
    assert training.complaints({"a": entry(float("nan"))}, 4) != []


@pytest.mark.parametrize("arm", training.ARMS)
def test_replicas_have_to_be_equal_always(arm: str) -> None:
    said = training.complaints({"a": entry(), "b": entry(**{arm: False})}, 4)
    assert said == [f"b: replicas of {arm} differ"]
    assert training.headline({"b": entry(**{arm: False})}, 4) == said[0]


def test_headline_says_how_equal() -> None:
    found = {"a": entry(), "b": entry()}
    assert training.headline(found, 2) == (
        "a, b on 2 ranks: ours equals stock bit for bit, all replicas equal"
    )
    far = {"a": entry(0.02, 0.01), "b": entry(0.001, 0.002)}
    assert "within 0.02, 0.001 of the way (its own groups: 0.01, 0.002)" in training.headline(
        far, 4
    )


def test_distance_is_a_share_of_the_way_from_the_start() -> None:
    start, ours, theirs = (torch.nn.Linear(2, 1, bias=False) for _ in range(3))
    start.weight.data.copy_(torch.tensor([[100.0, 0.0]]))
    ours.weight.data.copy_(torch.tensor([[100.0, 1.0]]))
    theirs.weight.data.copy_(torch.tensor([[100.0, 4.0]]))
    assert training.apart(ours, theirs, start) == pytest.approx(0.75)
    assert training.apart(ours, ours, start) == 0.0
    broken = torch.nn.Linear(2, 1, bias=False)
    broken.weight.data.fill_(float("nan"))
    assert training.apart(broken, theirs, start) == float("inf")
    assert training.digest(ours.parameters()) != training.digest(theirs.parameters())
