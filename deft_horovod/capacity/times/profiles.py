"""Profiles of models that are known by name: as a perfect profiler would see one rank compute.

Each layer takes the share of the time that it has of the model's arithmetic, and backward takes
twice as long as forward. Both are assumed; a profile that was measured says more.
"""

from __future__ import annotations

from deft_horovod.profile import Profile, Tensor
from deft_horovod.workloads.workload import Workload


def profile_of(workload: Workload, compute_us: float) -> Profile:
    """Of a step that computes so long; no link was measured."""
    tensors: list[Tensor] = []
    use_us: list[float] = []
    ready_us: list[float] = []
    forward_us = backward_us = 0.0
    stages = workload.stage_s(compute_us * 1e-6)
    whole_us = sum(backward_s for _, backward_s in stages) * 1e6
    for layer, (forward_s, backward_s) in zip(workload.layers, stages, strict=True):
        for tensor in layer.tensors:
            name = f"{layer.name}.{tensor.name}"
            tensors.append(Tensor(name=name, shape=(tensor.elements,), dtype="float32"))
            use_us.append(forward_us)
            ready_us.append(max(0.0, whole_us - backward_us))
        forward_us += forward_s * 1e6
        backward_us += backward_s * 1e6
    order = sorted(range(len(ready_us)), key=lambda index: (ready_us[index], -index))
    return Profile(
        ready_order=tuple(order),
        ready_us=tuple(ready_us),
        first_use_us=tuple(use_us),
        forward_us=forward_us,
        backward_us=backward_us,
        steps=1,
        tensors=tuple(tensors),
    )
