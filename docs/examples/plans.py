"""Plans are data: made, printed and compared with no cluster, no torch and no Horovod.

python docs/examples/plans.py
"""

from __future__ import annotations

from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.plan import Plan
from deft_horovod.policies import Request, get
from deft_horovod.profile import LinkCost, Profile


def make(policy: str, **options: object) -> Plan:
    sizes = {"conv.weight": 288, "conv.bias": 32, "fc.weight": 40_960, "fc.bias": 10}
    parameters = tuple(
        Parameter(name, elements, "float32", "float32", "cpu") for name, elements in sizes.items()
    )
    cost = LinkCost(alpha_us=1, beta_us_per_byte=0.0001)
    profile = Profile.assumed(len(parameters)).model_copy(update={"links": Profile.link_of(cost)})
    return get(policy).plan(Request(parameters, profile, Config(**options)))


bucket = make("bucket", first_bucket_bytes="1KiB", bucket_bytes="128KiB")
priority = make("priority", partition_bytes="64KiB", credit_bytes="64KiB")
print(bucket.describe())
print()
print(priority.describe())
print()
print("first difference:", bucket.difference(priority))
print("read back unchanged:", Plan.from_json(bucket.to_json()) == bucket)
