"""How late may updates be? The Preserver judges plans for gradients that turn more and more.

python docs/examples/affordable.py

needs no cluster: the profile is of a GPT-2 small whose communication takes as long as its step.
"""

from __future__ import annotations

from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.policies import Request, get
from deft_horovod.preserver.cost import Gradients
from deft_horovod.preserver.judge import preserved
from deft_horovod.profile import LinkCost, Profile

# The embedding is used first, and its gradient is ready last; twelve blocks; 100 ms a step.
sizes = {"embedding": 39_000_000} | {f"block{i}": 7_000_000 for i in range(12)}
parameters = tuple(Parameter(n, size, "float32", "float32", "cpu") for n, size in sizes.items())
total_bytes = 4 * sum(sizes.values())
profile = Profile(
    ready_order=tuple(range(12, -1, -1)),
    ready_us=(66_000, *(66_000 - 5_000 * i for i in range(12))),
    first_use_us=(0, *(2_500 * i for i in range(12))),
    forward_us=33_000,
    backward_us=66_000,
    optimizer_us=1_000,
    links=Profile.link_of(LinkCost(alpha_us=500, beta_us_per_byte=98_000 / total_bytes)),
)
request = Request(parameters, profile, Config(max_delay=1))
for turn in (0.5, 1.0, 2.0, 4.0):
    # What a rank would have measured, without any noise of batches.
    gradients = Gradients(
        own_square=1.0, average_square=1.0, change_square=turn, ranks=4, steps=100
    )
    plan, judgement = preserved(get("least_stale"), request, gradients, "local", budget=0.02)
    step_us = plan.prediction.step_us if plan.prediction is not None else profile.step_us
    print(f"{judgement.describe()}; {step_us / 1e3:.0f} ms a step")
