"""Requests for the policies that plan with measured links: any model, any load of any links."""

from dataclasses import replace

from hypothesis import strategies as st

from deft_horovod.config import Config
from deft_horovod.policies import Request
from deft_horovod.profile import LinkCost, LinkProfile, Profile
from tests.unit.support.planning import make_parameters

RATIOS = [0.01, 0.1, 0.3, 0.7, 0.95, 1.0, 1.3, 2.0, 4.0, 8.0, 20.0]


@st.composite
def hard_requests(draw, max_count=2000, least_delay=0):
    """A step takes 100 ms; communication on the first link takes a multiple of it."""
    pick = draw(st.randoms(use_true_random=False))
    count = draw(st.one_of(st.integers(1, 12), st.integers(1, 120), st.integers(1, max_count)))
    sizes = [
        pick.choice([0, 1, pick.randint(1, 4000), pick.randint(1, 400_000)]) for _ in range(count)
    ]
    if pick.random() < 0.3:
        sizes[pick.randrange(count)] = sum(sizes) + 1  # one that is larger than all others
    parameters = make_parameters(sizes)
    forward, backward = pick.uniform(0, 60e3), pick.uniform(1, 80e3)
    ready = sorted((pick.uniform(0, backward) for _ in range(count)), reverse=True)
    use = sorted(pick.uniform(0, forward) for _ in range(count))
    if pick.random() < 0.3:
        pick.shuffle(ready)
    tied = pick.randrange(count)
    ready[tied] = backward
    if pick.random() < 0.3:
        use = [u if pick.random() < 0.7 else None for u in use]
    optimizer = pick.choice([0.0, pick.uniform(0, 20e3)])
    total = sum(parameter.bytes + 16 for parameter in parameters)
    beta = pick.choice(RATIOS) * (forward + backward + optimizer) / total
    links = []
    for name in ("horovod", "gloo", "third")[: pick.choice([1, 1, 1, 2, 2, 3])]:
        alpha = pick.choice([0.0, 10.0, 200.0, 2000.0])
        cost = LinkCost(alpha_us=alpha, beta_us_per_byte=beta)
        busy = LinkCost(alpha_us=alpha, beta_us_per_byte=beta * pick.choice([1.0, 1.2, 2.5]))
        links.append(LinkProfile(name=name, cost=cost, busy_cost=pick.choice([None, busy])))
        beta *= pick.choice([1.0, 2.5, 10.0])
    profile = Profile(
        ready_order=tuple(sorted(range(count), key=lambda i: (ready[i], i))),
        ready_us=tuple(ready),
        first_use_us=tuple(use),
        forward_us=forward,
        backward_us=backward,
        optimizer_us=optimizer,
        links=tuple(links),
    )
    config = Config(max_delay=draw(st.integers(least_delay, 3)), max_merge=draw(st.integers(1, 8)))
    return Request(parameters, profile, config)


def assert_within_limits(plan, request):
    limits = request.config
    for generation in plan.generations:
        assert generation.apply_step - generation.last_step <= limits.max_delay
        assert generation.last_step - generation.first_step < limits.max_merge


def exposed_us(plan, request):
    """Predicted, as the plan itself says."""
    assert plan.prediction.profile == request.profile.hash()
    return plan.prediction.exposed_us


def with_options(request, **options):
    return replace(request, config=Config(**{**request.config.model_dump(), **options}))
