"""Profiles are data: what two ranks measured becomes one profile, with no cluster and no torch.

python docs/examples/profiles.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from deft_horovod.profile import (
    HOROVOD_LINK,
    LinkProfile,
    LinkSample,
    ModuleProfile,
    Profile,
    Tensor,
)
from deft_horovod.profile.aggregate import RankReport, StageTimes, aggregate
from deft_horovod.profile.link_cost import fit_samples, residual


def report(rank: int, slowness: float) -> RankReport:
    medians_us = {"forward": 40_000, "backward": 80_000, "optimizer": 2_000, "step": 180_000}
    return RankReport(
        rank=rank,
        steps=10,
        stages=tuple(
            StageTimes(
                stage=stage,
                median_us=us * slowness,
                p10_us=us * slowness * 0.98,
                p90_us=us * slowness * 1.05,
            )
            for stage, us in medians_us.items()
        ),
        ready_order=(1, 0),
        ready_us=(78_000 * slowness, 30_000 * slowness),
        first_use_us=(1_000 * slowness, 25_000 * slowness),
        modules=(
            ModuleProfile(name="conv", type="Conv2d", forward_us=24_000, parameters=(0,)),
            ModuleProfile(name="fc", type="Linear", forward_us=14_000, parameters=(1,)),
        ),
    )


def link() -> LinkProfile:
    measured_us = {16: 1_010, 65_536: 2_150, 4_194_304: 71_000}
    samples = tuple(LinkSample(size_bytes=size, time_us=us) for size, us in measured_us.items())
    cost = fit_samples(samples)
    if cost is None:
        raise SystemExit("no samples")
    rounded = cost.model_copy(
        update={
            "alpha_us": round(cost.alpha_us, 1),
            "beta_us_per_byte": round(cost.beta_us_per_byte, 6),
        }
    )
    off = round(residual(samples, rounded), 4)
    return LinkProfile(name=HOROVOD_LINK, cost=rounded, samples=samples, residual=off)


def pretty(profile: Profile) -> str:
    """A line for each field, and for each entry of what is a list of parts."""
    lines = []
    for name, value in profile.model_dump(mode="json").items():
        text = json.dumps(value)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n    " + ",\n    ".join(map(json.dumps, value)) + "\n  ]"
        lines.append(f'  "{name}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}"


tensors = (
    Tensor(name="conv.weight", shape=(64, 3, 3, 3), dtype="float32"),
    Tensor(name="fc.weight", shape=(1_000, 2_048), dtype="float32"),
)
profile = aggregate([report(0, 1.0), report(1, 1.25)], tensors, [link()])
print(pretty(profile))
print()
print(f"without communication a step takes {profile.compute_us / 1e3:.1f} ms")
print(f"the slowest rank in backward is {profile.spreads[1].slowest_rank}")
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "profile.json"
    profile.save(path)
    print("read back unchanged:", Profile.load(path) == profile)
