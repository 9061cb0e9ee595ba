"""The cost of hooks and packing: ratios are taken round by round."""

from __future__ import annotations

import pytest

from scripts.gpu.measure import overhead


def test_ratios_are_of_the_same_round() -> None:
    rounds = [
        {"torch": 10.0, "stock": 10.1, "ours": 10.05},
        {"torch": 20.0, "stock": 20.2, "ours": 20.1},
        {"torch": 10.0, "stock": 10.1, "ours": 30.0},
    ]
    found = overhead.summary(rounds)
    assert found["ratio_to_torch"]["ours"] == {"median": 1.005, "min": 1.005, "max": 3.0}
    assert found["step_ms"]["torch"]["median"] == 10.0
    assert overhead.headline(found, "m") == (
        "m: torch 10.00 ms, ours +0.5%, stock Horovod +1.0%; target of +1%: met"
    )
    missed = overhead.summary([{"torch": 10.0, "stock": 10.0, "ours": 10.2}])
    assert overhead.headline(missed, "m").endswith("target of +1%: MISSED")


def test_arms_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    order = ""

    class Arm:
        def __init__(self, name: str) -> None:
            self.name, self.steps = name, 0

        def step(self) -> None:
            nonlocal order
            order += self.name[0]
            self.steps += 1

    monkeypatch.setattr(overhead, "WARM_UP", 1)
    options = overhead.argparse.Namespace(rounds=2, steps=1, device="cpu")
    arms = {name: Arm(name) for name in overhead.ARMS}
    rounds = overhead.measure(arms, options)
    assert order == "tso" + "tso" + "sot"
    assert [set(entry) for entry in rounds] == [set(overhead.ARMS)] * 2
