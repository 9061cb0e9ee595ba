"""The benchmarks' emulated models as profiles: what they compute, what their link costs."""

import json
from pathlib import Path

import numpy as np

from deft_horovod.config import Config
from deft_horovod.parameter import Parameter
from deft_horovod.policies import Request
from deft_horovod.profile import LinkCost, Profile
from tests.unit.scripts.conftest import load_script

REPORT = Path(__file__).resolve().parents[3] / "docs" / "benchmarks" / "first.json"


def cells() -> list[dict]:
    return json.loads(REPORT.read_text(encoding="utf-8"))["cells"]


def link_cost(hosts: int) -> LinkCost:
    """Through the times that an all-reduce of everything, alone, was measured to take."""
    seen = [(c["gradient_bytes"], c["communication_ms"]) for c in cells() if c["hosts"] == hosts]
    sizes, times = np.array(seen, dtype=float).T
    beta_ms, alpha_ms = np.polyfit(sizes, times, 1, w=1 / times)
    return LinkCost(alpha_us=max(0.0, alpha_ms) * 1e3, beta_us_per_byte=beta_ms * 1e3)


def request(cell: dict, **options: object) -> Request:
    """The model of a cell of the report, as a perfect profiler would see it."""
    workloads = load_script("workloads")
    model = workloads.WORKLOADS[cell["profile"]]().scaled(cell["gradient_bytes"])
    stages = model.stage_s(cell["compute_ms"] / 1e3)
    parameters, use_us, ready_us, place = [], [], [], {}
    forward_us = sum(forward for forward, _ in stages) * 1e6
    backward_us = sum(backward for _, backward in stages) * 1e6
    used_us, left_us = 0.0, backward_us
    for layer, (forward, backward) in zip(model.layers, stages, strict=True):
        for tensor in layer.tensors:
            place[f"{layer.name}.{tensor.name}"] = len(parameters)
            name = f"{layer.name}.{tensor.name}"
            parameters.append(Parameter(name, tensor.elements, "float32", "float32", "cpu"))
            use_us.append(used_us)
            ready_us.append(left_us)
        used_us += forward * 1e6
        left_us -= backward * 1e6
    profile = Profile(
        ready_order=tuple(sorted(range(len(ready_us)), key=lambda i: (ready_us[i], -i))),
        ready_us=tuple(ready_us),
        first_use_us=tuple(use_us),
        forward_us=forward_us,
        backward_us=backward_us,
        steps=10,
        size=cell["hosts"],
        links=Profile.link_of(link_cost(cell["hosts"])),
    )
    return Request(tuple(parameters), profile, Config(**options))
