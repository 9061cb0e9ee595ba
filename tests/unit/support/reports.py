"""Reports of all kinds: measured and predicted, with one link, two and none, with odd names."""

from html.parser import HTMLParser
from math import prod

from deft_horovod.cli.inputs import parameters_for, parameters_of
from deft_horovod.comparison import Arm, Comparison
from deft_horovod.config import Config
from deft_horovod.plan import Plan
from deft_horovod.policies import get
from deft_horovod.policies.base import Request
from deft_horovod.profile import LinkSample, ModuleProfile, Profile, Tensor
from deft_horovod.report.basics.findings import Findings, ReportInputs, findings
from deft_horovod.solver.predict.prediction import predict
from tests.unit.support.example import profile

ODD = """<b>&"quoted"' </script> ü \u202e"""
VOID = {"meta", "link", "br", "hr", "img", "input"}


def sampled(one: Profile) -> Profile:
    """With samples of each link, some above the line and some below."""
    sizes = [4**n for n in range(5, 14)]
    links = [
        link.model_copy(
            update={
                "samples": tuple(
                    LinkSample(
                        size_bytes=size,
                        time_us=link.cost.time_us(size) * (1.1 if number % 2 else 0.93),
                    )
                    for number, size in enumerate(sizes)
                ),
                "residual": 0.08,
            }
        )
        for link in one.links
    ]
    return one.model_copy(update={"links": tuple(links)})


def renamed(one: Profile, name: str, *, links: bool = True) -> Profile:
    """Modules, tensors and links have that in their names."""
    return one.model_copy(
        update={
            "modules": tuple(
                m.model_copy(update={"name": f"{m.name}{name}", "type": name}) for m in one.modules
            ),
            "tensors": tuple(
                t.model_copy(update={"name": f"{name}{n}.weight"})
                for n, t in enumerate(one.tensors)
            ),
            "links": tuple(
                link.model_copy(update={"name": f"{link.name}{name}"}) if links else link
                for link in one.links
            ),
        }
    )


def plan_of(one: Profile, policy: str, **options: int) -> Plan:
    request = Request(parameters_of(one), one, Config.model_validate(options))
    plan = get(policy).plan(request)
    return plan if plan.prediction is not None else predict(plan, one)


def predicted(
    policy: str | None = "least_stale", one: Profile | None = None, **options: int
) -> Findings:
    """Of a profile; without a policy there is no plan."""
    one = sampled(profile()) if one is None else one
    plan = None if policy is None else plan_of(one, policy, **options)
    words = {name: str(value) for name, value in options.items()}
    return findings(
        ReportInputs("profile.json", one, parameters_for(one, plan), plan, options=words)
    )


def comparison(chosen: int = 2, one: Profile | None = None) -> Comparison:
    """Stock Horovod, and two others with and without late updates; two rounds."""
    one = sampled(profile()) if one is None else one
    plans = {"stock": None, "bucket": plan_of(one, "bucket"), "deft": plan_of(one, "deft")}
    steps_us = {"stock": 260_000.0, "bucket": 255_000.0, "deft": 201_000.0}
    arms = tuple(
        Arm(
            policy=name,
            late=name == "deft",
            rounds_us=((us, us * 1.05, us * 0.99), (us * 1.02,) * 3),
            plan=plans[name],
        )
        for name, us in steps_us.items()
    )
    return Comparison(policy="auto", chosen=chosen, profile=one, arms=arms)


def compared(chosen: int = 2, one: Profile | None = None) -> Findings:
    of = comparison(chosen, one)
    return findings(
        ReportInputs.compared("comparison.json", of, parameters_for(of.profile, of.ours.plan))
    )


def many_tensors(count: int) -> Profile:
    """A model of so many layers."""
    base = profile()
    return base.model_copy(
        update={
            "ready_order": tuple(reversed(range(count))),
            "ready_us": tuple(120_000.0 * (count - i) / count for i in range(count)),
            "first_use_us": tuple(70_000.0 * i / count for i in range(count)),
            "tensors": tuple(
                Tensor(name=f"layer{i}.weight", shape=(20, 1 + i % 500), dtype="float32")
                for i in range(count)
            ),
            "modules": tuple(
                ModuleProfile(name=f"layer{i}", type="Linear", forward_us=35.0, parameters=(i,))
                for i in range(count)
            ),
        }
    )


def empty() -> Profile:
    """Of a model without parameters."""
    return Profile.assumed(0).model_copy(update={"size": 2, "links": profile().links})


def alone() -> Profile:
    """One rank, which no link was measured on; no module was seen."""
    return profile(links=(), size=1).model_copy(update={"modules": ()})


def idle() -> Profile:
    """Nothing takes any time."""
    one = profile(links=())
    count = len(one.tensors)
    assert sum(prod(t.shape) for t in one.tensors)
    return one.model_copy(
        update={
            "forward_us": 0.0,
            "backward_us": 0.0,
            "optimizer_us": 0.0,
            "step_us": 0.0,
            "ready_us": (0.0,) * count,
            "first_use_us": (None,) * count,
        }
    )


class Page(HTMLParser):
    """What a browser would see: tags in their order, the texts, whether all is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]
