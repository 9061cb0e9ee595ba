"""Shapes of published models: as many parameters, tensors and bytes as they have."""

import pytest

from deft_horovod.workloads.catalogue import SHAPES
from scripts.studies.reproduce.facts import load


def test_sizes_are_the_published_ones() -> None:
    facts, shapes = load(), SHAPES
    seen = set()
    for name in facts.known:
        model, _, what = name.rpartition(".")
        if model not in shapes or what not in {"parameters", "bytes", "tensors"}:
            continue
        workload = shapes[model]()
        seen.add(model)
        if what == "parameters":
            assert workload.elements == facts[name]
        elif what == "tensors":
            assert workload.tensors == facts[name]
        else:
            assert workload.size_bytes / 1e6 == pytest.approx(facts[name], abs=0.05), name
    assert seen == {name for name in shapes if not name.endswith("_pretraining")}
