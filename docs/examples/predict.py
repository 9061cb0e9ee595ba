"""What would a plan do? Its timeline follows from a profile: no cluster, no torch, no Horovod.

python docs/examples/predict.py [folder]

writes plan.json and profile.json into the folder, for `python -m deft_horovod.picture.timeline`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.plan import Generation, Plan
from deft_horovod.policies import Request, get
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.solver.predict.prediction import predict

# A small language model: the embedding is used first, and its gradient is ready last.
sizes = {"embedding.weight": 4_000_000} | {f"block{i}.weight": 1_500_000 for i in range(4)}
parameters = tuple(
    Parameter(name, elements, "float32", "float32", "cpu") for name, elements in sizes.items()
)
profile = Profile(
    ready_order=(4, 3, 2, 1, 0),
    ready_us=(120_000, 110_000, 80_000, 50_000, 20_000),
    first_use_us=(0, 2_000, 18_000, 34_000, 50_000),
    forward_us=70_000,
    backward_us=120_000,
    optimizer_us=5_000,
    links=Profile.link_of(LinkCost(alpha_us=1_000, beta_us_per_byte=0.004)),
)
config = Config(bucket_bytes="8MB", first_bucket_bytes="8MB")
plan = predict(get("bucket").plan(Request(parameters, profile, config)), profile)
print(plan.describe())

# The same plan, except that the embedding, in the last bucket, is applied one step late.
embedding = len(plan.buckets) - 1
late = Plan(
    **{
        **dict(plan),
        "policy": "hand-made",
        "buffers": 2,
        "generations": tuple(
            Generation(bucket=g.bucket, apply_step=1) if g.bucket == embedding else g
            for g in plan.generations
        ),
    }
)
late = predict(late, profile)
print()
print(late.describe())
for folder in sys.argv[1:]:
    late.save(Path(folder) / "plan.json")
    profile.save(Path(folder) / "profile.json")
