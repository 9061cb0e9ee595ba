"""What planning is told, and cannot find out by itself."""

from __future__ import annotations

from dataclasses import dataclass

from deft_horovod.base.wire_format import WireFormat
from deft_horovod.config import Config
from deft_horovod.peers import OVER_TORCH, stock
from deft_horovod.policies.base import Policy
from deft_horovod.policies.limits import FORMATS, limits, narrowed
from deft_horovod.runtime.job_request import Purpose
from deft_horovod.runtime.links.links import AskedCosts
from deft_horovod.runtime.ranks.groups import Groups
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.solver.problem import Limits


@dataclass(frozen=True)
class Brief:
    """Of one optimizer, in one phase of its job."""

    policy: Policy
    config: Config
    reduction: Reduction
    groups: Groups
    purpose: Purpose = "train"  # of the `Process.job_request`
    calm: bool = False  # the learning rate has fallen far, see `RateWatch`
    late: bool = True  # updates may be, in this phase
    sums: bool = True  # steps may travel as one sum
    gates: bool = True  # updates may wait until forward needs them
    harmful: tuple[WireFormat, ...] = ()  # formats that the optimizer does not bear

    @property
    def limits(self) -> Limits:
        """How late updates may be: by the options, the phase of the job and the learning rate."""
        allowed = limits(self.policy.name, self.config, calm=self.calm)
        return narrowed(allowed, late=self.late, sums=self.sums, without=self.harmful)

    @property
    def watches_forward(self) -> bool:
        """Whether it has to be known when parameters are used."""
        return (
            self.policy.gates
            or self.policy.measures  # its updates may be late, and predicted before forward
            or self.purpose != "train"
            or bool(self.config.plan_file)
        )

    @property
    def correction(self) -> str:
        """What is done about late updates; a name of `GUESSES`, or "none"."""
        asked = self.config.correction
        return self.policy.correction if asked == "auto" else asked

    @property
    def encodes(self) -> bool:
        """Whether messages may travel in wire formats."""
        return bool(self.asked_costs.formats or self.config.plan_file)

    @property
    def asked_costs(self) -> AskedCosts:
        """What has to be known of links besides what an all-reduce takes. A profile is asked for
        by people who want to compare."""
        every = self.purpose == "profile"
        wire_formats = FORMATS["fast"] if every else self.limits.formats
        encodable = self.reduction.compression is stock.Compression.none
        halves = (self.policy.splits or every) and not OVER_TORCH  # Gloo has none
        return AskedCosts(halves, wire_formats if encodable else ())
