"""Models as profiles: sizes from the layers' shapes, times in proportion to their arithmetic.

Forward takes a third of a step of 200 ms, backward the rest, unless a test says otherwise. `ccr` is
the time that all bytes take on the first link, start-up not counted, over that of the step.
"""

from collections.abc import Sequence
from dataclasses import replace

from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.policies import Request
from deft_horovod.profile import FormatCost, LinkCost, LinkProfile, Profile

STEP_US = 200_000.0
ALPHA_US = 1_500.0
VECTOR = 8192  # elements; layers are larger

# A layer: the elements of its tensors, and its arithmetic.
Layer = tuple[tuple[int, ...], float]


def _conv(inputs: int, outputs: int, kernel: int, size: int, *, bias: bool = False) -> Layer:
    weights = inputs * outputs * kernel * kernel
    return (weights, outputs) if bias else (weights,), float(weights * size * size)


def vgg19() -> list[Layer]:
    layers, inputs, size = [], 3, 224
    for outputs, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(count):
            layers.append(_conv(inputs, outputs, 3, size, bias=True))
            inputs = outputs
        size //= 2
    for inputs, outputs in ((25_088, 4096), (4096, 4096), (4096, 1000)):
        layers.append(((inputs * outputs, outputs), float(inputs * outputs)))
    return layers


def resnet101() -> list[Layer]:
    def normed(layer: Layer, outputs: int) -> list[Layer]:
        return [layer, ((outputs, outputs), layer[1] / 50)]

    layers, inputs, size = normed(_conv(3, 64, 7, 112), 64), 64, 56
    for width, count in ((64, 3), (128, 4), (256, 23), (512, 3)):
        for block in range(count):
            layers += normed(_conv(inputs, width, 1, size), width)
            layers += normed(_conv(width, width, 3, size), width)
            layers += normed(_conv(width, 4 * width, 1, size), 4 * width)
            if block == 0:
                layers += normed(_conv(inputs, 4 * width, 1, size), 4 * width)
            inputs = 4 * width
        size //= 2
    return [*layers, ((2048 * 1000, 1000), float(2048 * 1000))]


def gpt2() -> list[Layer]:
    """Small; the embedding is tied: it is used first and its gradient is ready last."""
    wide, words, places = 768, 50_257, 1024
    layers = [((words * wide, places * wide), 0.02)]
    for _ in range(12):
        layers += [
            ((wide, wide), 0.02),
            ((wide * 3 * wide, 3 * wide, wide * wide, wide), 5.0),
            ((wide, wide), 0.02),
            ((wide * 4 * wide, 4 * wide), 4.0),
            ((4 * wide * wide, wide), 4.0),
        ]
    return [*layers, ((wide, wide), 0.02), ((), 40.0)]  # the last one is the tied output layer


MODELS = {"vgg19": vgg19, "resnet101": resnet101, "gpt2": gpt2}


def request(
    name: str,
    ccr: float,
    rates: Sequence[float] = (1.0,),
    alpha_us: float = ALPHA_US,
    **options: object,
) -> Request:
    """`rates`: of each link, relative to the first one."""
    layers = MODELS[name]()
    parameters, ready, use = [], [], []
    total = sum(work for _, work in layers)
    done = 0.0
    for sizes, work in layers:
        for size in sizes:
            parameters.append(Parameter(f"p{len(parameters)}", size, "float32", "float32", "cpu"))
            use.append(done / total * STEP_US / 3)
            ready.append((1.0 - done / total) * STEP_US * 2 / 3)
        done += work
    beta = ccr * STEP_US / sum(parameter.bytes for parameter in parameters)
    names = ("horovod", "gloo", "third")
    costs = [LinkCost(alpha_us=alpha_us, beta_us_per_byte=beta / rate) for rate in rates]
    profile = Profile(
        ready_order=tuple(sorted(range(len(ready)), key=lambda i: (ready[i], -i))),
        ready_us=tuple(ready),
        first_use_us=tuple(use),
        forward_us=STEP_US / 3,
        backward_us=STEP_US * 2 / 3,
        steps=10,
        links=tuple(
            LinkProfile(name=name, cost=cost, busy_cost=cost if len(rates) > 1 else None)
            for name, cost in zip(names, costs, strict=False)
        ),
    )
    return Request(tuple(parameters), profile, Config(**options))


# What a message takes in each format, of its bytes as float32; and its start-up, of that of others.
SAVED = {"f16": 0.55, "int8": 0.3, "int4": 0.17}
SLOWER_START = 1.5


def with_formats(given: Request, accuracy: str | None) -> Request:
    """The same model where formats were measured, and vectors are exact."""
    links = []
    for link in given.profile.links:
        costs = []
        for one, share in SAVED.items():
            cost = link.cost.model_copy(
                update={
                    "alpha_us": link.cost.alpha_us * SLOWER_START,
                    "beta_us_per_byte": link.cost.beta_us_per_byte * share,
                }
            )
            costs.append(FormatCost(format=one, cost=cost))  # type: ignore[arg-type]
        links.append(link.model_copy(update={"formats": tuple(costs)}))
    return replace(
        given,
        profile=given.profile.model_copy(update={"links": tuple(links)}),
        parameters=tuple(replace(p, exact=p.elements < VECTOR) for p in given.parameters),
        config=given.config.model_copy(update={"accuracy": accuracy}),
    )
