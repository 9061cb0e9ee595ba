"""A model of a thousand tensors: blocks of a transformer, as many as it takes."""

from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.policies import Request
from deft_horovod.profile import LinkCost, Profile, Tensor

WIDE = 1024
BLOCK = (WIDE, WIDE, 3 * WIDE**2, 3 * WIDE, WIDE**2, WIDE, WIDE, WIDE, 4 * WIDE**2, 4 * WIDE)
REST = (4 * WIDE**2, WIDE)
FORWARD_US, BACKWARD_US = 400_000.0, 800_000.0


def request(count: int = 1_000, coverage: float = 1.0, **options: object) -> Request:
    """`coverage`: communication on two ranks over computing."""
    sizes = [50_257 * WIDE, WIDE**2]
    while len(sizes) < count:
        sizes += [*BLOCK, *REST]
    sizes = sizes[:count]
    parameters = tuple(
        Parameter(f"p{index}", size, "float32", "float32", "cpu")
        for index, size in enumerate(sizes)
    )
    total, done = sum(sizes), 0
    use_us, ready_us = [], []
    for size in sizes:
        use_us.append(FORWARD_US * done / total)
        ready_us.append(BACKWARD_US * (1 - done / total))
        done += size
    beta = coverage * (FORWARD_US + BACKWARD_US) / (4 * total)
    profile = Profile(
        ready_order=tuple(reversed(range(count))),
        ready_us=tuple(ready_us),
        first_use_us=tuple(use_us),
        forward_us=FORWARD_US,
        backward_us=BACKWARD_US,
        steps=10,
        size=2,
        links=Profile.link_of(LinkCost(alpha_us=500.0, beta_us_per_byte=beta)),
        tensors=tuple(
            Tensor(name=p.name, shape=(p.elements,), dtype="float32") for p in parameters
        ),
    )
    return Request(parameters, profile, Config.model_validate(options))
