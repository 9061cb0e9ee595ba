"""What policy `deft` plans where communication takes 1.4 times as long as compute.

python docs/examples/deft.py
"""

from __future__ import annotations

from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.policies import Request, get
from deft_horovod.profile import LinkCost, Profile
from deft_horovod.solver.predict.prediction import predict

# Ten equal layers of 4 MB; all of them together take 90 ms and a start-up for each message.
parameters = tuple(
    Parameter(f"layer{i}.weight", 1_000_000, "float32", "float32", "cpu") for i in range(10)
)
profile = Profile(
    ready_order=tuple(reversed(range(10))),
    ready_us=tuple(4_500.0 * (10 - i) for i in range(10)),
    first_use_us=tuple(2_200.0 * i for i in range(10)),
    forward_us=22_000,
    backward_us=45_000,
    links=Profile.link_of(LinkCost(alpha_us=200, beta_us_per_byte=0.00225)),
)
request = Request(parameters, profile, Config(bucket_bytes="4MB"))
bucket = predict(get("bucket").plan(request), profile)
print(bucket.describe())
print()
print(get("deft").plan(request).describe())
