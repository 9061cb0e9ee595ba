"""Two ways to hide communication that takes nearly as long as compute. No cluster, no torch.

python docs/examples/hide.py
"""

from __future__ import annotations

from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.policies import Request, get
from deft_horovod.profile import LinkCost, Profile

# A small language model: the embedding is used first, and its gradient is ready last.
sizes = {"embedding.weight": 4_000_000} | {f"block{i}.weight": 1_500_000 for i in range(4)}
parameters = tuple(
    Parameter(name, elements, "float32", "float32", "cpu") for name, elements in sizes.items()
)


def profile(beta_us_per_byte: float) -> Profile:
    return Profile(
        ready_order=(4, 3, 2, 1, 0),
        ready_us=(120_000, 110_000, 80_000, 50_000, 20_000),
        first_use_us=(0, 2_000, 18_000, 34_000, 50_000),
        forward_us=70_000,
        backward_us=120_000,
        optimizer_us=5_000,
        links=Profile.link_of(LinkCost(alpha_us=1_000, beta_us_per_byte=beta_us_per_byte)),
    )


def show(title: str, policy: str, beta_us_per_byte: float, **limits: int) -> None:
    request = Request(parameters, profile(beta_us_per_byte), Config(**limits))
    print(f"# {title}")
    print(get(policy).plan(request).describe())
    print()


# 40 MB take 160 ms of a step of 195 ms, and then twice as long.
show("synchronous", "least_stale", 0.004)
show("least stale", "least_stale", 0.004, max_delay=1)
show("deft", "deft", 0.004)
show("least stale, twice the load", "least_stale", 0.008, max_delay=1, max_merge=4)
show("deft, twice the load", "deft", 0.008)
