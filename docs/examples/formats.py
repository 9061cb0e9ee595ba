"""One model on a slow link with values as they are, in 16 and 8 bits, and in 4 bits."""

from dataclasses import replace

from deft_horovod import policies
from deft_horovod.base.parameter import Parameter, stays_exact
from deft_horovod.config import Config
from deft_horovod.plan import Plan
from deft_horovod.plan.staleness_text import staleness_text
from deft_horovod.policies import Request
from deft_horovod.profile import FormatCost, LinkCost, LinkProfile, Profile

# Forward 67 ms, backward 133 ms. Five layers, the first one is used first and ready last.
SHAPES = ((512, 1024), (1024, 2048), (2048, 2048), (2048, 2048), (2048, 512))
USED_US = (0.0, 10_000.0, 25_000.0, 40_000.0, 58_000.0)
READY_US = (133_000.0, 110_000.0, 80_000.0, 50_000.0, 15_000.0)
# 125 MB/s. Formats: what was measured for messages whose values have so many bytes as float32.
EXACT = LinkCost(alpha_us=500.0, beta_us_per_byte=0.008)
FORMATS = (
    FormatCost(format="f16", cost=LinkCost(alpha_us=800.0, beta_us_per_byte=0.0042)),
    FormatCost(format="int8", cost=LinkCost(alpha_us=800.0, beta_us_per_byte=0.0023)),
    FormatCost(format="int4", cost=LinkCost(alpha_us=800.0, beta_us_per_byte=0.0013)),
)


def request() -> Request:
    """What a policy is asked."""
    names = [f"layer{number}.weight" for number in range(len(SHAPES))]
    parameters = tuple(
        Parameter(name, rows * columns, "float32", "float32", "cpu", stays_exact(name, shape))
        for name, shape in zip(names, SHAPES, strict=True)
        for rows, columns in (shape,)
    )
    profile = Profile(
        ready_order=tuple(reversed(range(len(SHAPES)))),
        ready_us=READY_US,
        first_use_us=USED_US,
        forward_us=67_000.0,
        backward_us=133_000.0,
        size=2,
        links=(LinkProfile(name="horovod", cost=EXACT, formats=FORMATS),),
    )
    return Request(parameters, profile, Config())


def planned(accuracy: str) -> Plan:
    """By least_stale."""
    asked = request()
    config = asked.config.model_copy(update={"accuracy": accuracy, "max_delay": 0})
    return policies.get("least_stale").plan(replace(asked, config=config))


def main() -> None:
    """Prints all three, and one of them in full."""
    for accuracy in ("exact", "equal", "fast"):
        plan = planned(accuracy)
        assert plan.prediction is not None  # noqa: S101 (least_stale predicts its plans)
        step_ms, compute_ms = plan.prediction.step_us / 1e3, plan.prediction.compute_us / 1e3
        print(f"{accuracy}: step {step_ms:.1f} ms, computing {compute_ms:.1f} ms")
        print(f"  {staleness_text(plan)}")
    print()
    print(planned("equal").describe())


if __name__ == "__main__":
    main()
