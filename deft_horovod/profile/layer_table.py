"""What each layer of a profiled model computes and sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from deft_horovod.base.format_bytes import FormatShares, together
from deft_horovod.base.parameter import Parameter
from deft_horovod.profile.profile import LinkProfile, Profile


@dataclass(frozen=True)
class LayerRow:
    """A module that owns parameters, or a parameter that no module was seen to use."""

    number: int  # in the order of the model, from 1 on
    name: str
    type: str
    parameters: int  # tensors
    bytes: int
    forward_us: float
    backward_us: float
    ready_us: float  # since backward began, of the last of its gradients
    communication_us: dict[str, float]  # by link, if its gradients travelled as one message
    share: float  # of the bytes of the model
    # How its gradients travel under a plan, that of most bytes first; empty: there is no plan.
    formats: FormatShares = field(default_factory=dict)


@dataclass(frozen=True)
class LayerTable:
    rows: tuple[LayerRow, ...]
    forward_us: float
    backward_us: float
    optimizer_us: float
    step_us: float  # as measured, under stock Horovod; 0: nothing was measured
    bytes: int
    communication_us: dict[str, float]  # by link, of all rows
    formats: FormatShares = field(default_factory=dict)  # of all rows

    @property
    def compute_us(self) -> float:
        return self.forward_us + self.backward_us + self.optimizer_us

    @property
    def exposed_us(self) -> float:
        """What stock Horovod did not hide."""
        return max(0.0, self.step_us - self.compute_us) if self.step_us else 0.0

    @property
    def coverage_rate(self) -> float | None:
        """Communication over computing, on the first link; None: no link was measured."""
        total_us = next(iter(self.communication_us.values()), None)
        if total_us is None or self.compute_us <= 0.0:
            return None
        return total_us / self.compute_us

    def to_data(self) -> dict[str, Any]:
        return {
            "layers": [asdict(row) for row in self.rows],
            "totals": {
                "bytes": self.bytes,
                "formats": {one: asdict(part) for one, part in self.formats.items()},
                "forward_us": self.forward_us,
                "backward_us": self.backward_us,
                "optimizer_us": self.optimizer_us,
                "compute_us": self.compute_us,
                "communication_us": self.communication_us,
                "coverage_rate": self.coverage_rate,
                "stock_step_us": self.step_us or None,
                "stock_exposed_us": self.exposed_us if self.step_us else None,
            },
        }


def layer_table(
    profile: Profile, parameters: Sequence[Parameter], formats: Sequence[FormatShares] = ()
) -> LayerTable:
    """One row for each layer, in the order of the model.

    A layer's backward is what passed since the gradients before its own were ready, so all rows
    together are the backward stage up to the last gradient. `formats`: how each parameter travels
    under a plan; communication is what that takes. None: there is no plan.
    """
    own_us = _backward_of_each(profile)
    size = sum(parameter.bytes for parameter in parameters)
    rows = []
    for number, (name, kind, forward_us, members) in enumerate(_layers(profile, parameters), 1):
        own_bytes = sum(parameters[index].bytes for index in members)
        own = together(part for i in members if formats for part in formats[i].items())
        rows.append(
            LayerRow(
                number=number,
                name=name,
                type=kind,
                parameters=len(members),
                bytes=own_bytes,
                forward_us=forward_us,
                backward_us=sum(own_us[index] for index in members),
                ready_us=max(profile.ready_us[index] for index in members),
                communication_us={
                    link.name: _time_us(link, own, own_bytes) for link in profile.links
                },
                share=own_bytes / size if size else 0.0,
                formats=own,
            )
        )
    return LayerTable(
        rows=tuple(rows),
        forward_us=profile.forward_us,
        backward_us=profile.backward_us,
        optimizer_us=profile.optimizer_us,
        step_us=profile.step_us,
        bytes=size,
        communication_us={
            link.name: sum(row.communication_us[link.name] for row in rows)
            for link in profile.links
        },
        formats=together(part for row in rows for part in row.formats.items()),
    )


def _time_us(link: LinkProfile, formats: FormatShares, size_bytes: int) -> float:
    """As one message, which starts as one of the format that most of its bytes have. What was not
    measured in a format counts as it is."""
    if not formats:
        return link.cost.time_us(size_bytes)
    costs = {one: link.cost_in(one) or link.cost for one in formats}
    (main, most), *others = formats.items()
    more_us = (costs[one].beta_us_per_byte * part.bytes for one, part in others)
    return costs[main].time_us(most.bytes) + sum(more_us)


def _layers(
    profile: Profile, parameters: Sequence[Parameter]
) -> list[tuple[str, str, float, tuple[int, ...]]]:
    """(name, type, forward, parameters): each parameter once, with the module that came first."""
    taken: set[int] = set()
    found = []
    for module in profile.modules:
        members = tuple(index for index in module.parameters if index not in taken)
        if members:
            taken.update(members)
            found.append((module.name or "(model)", module.type, module.forward_us, members))
    for index, parameter in enumerate(parameters):
        if index not in taken:
            found.append((parameter.name, "parameter", 0.0, (index,)))
    return sorted(found, key=lambda layer: layer[3][0])


def _backward_of_each(profile: Profile) -> list[float]:
    own_us = [0.0] * len(profile.ready_order)
    before_us = 0.0
    for index in profile.ready_order:
        own_us[index] = max(0.0, profile.ready_us[index] - before_us)
        before_us = max(before_us, profile.ready_us[index])
    return own_us
