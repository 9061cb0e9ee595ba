"""The links of one optimizer: Horovod's own, and a second one where the options name it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch

from deft_horovod.base.wire_format import WireFormat
from deft_horovod.config import Config
from deft_horovod.peers import OVER_TORCH
from deft_horovod.profile import HOROVOD_LINK, LinkCost, LinkProfile
from deft_horovod.runtime.links.format_probe import probe_formats
from deft_horovod.runtime.links.mesh import open_mesh, open_mesh_beside_horovod, open_torch_mesh
from deft_horovod.runtime.links.message_stream import Allowance
from deft_horovod.runtime.links.probe import probe_links
from deft_horovod.runtime.links.second_link import open_second_link
from deft_horovod.runtime.links.torch_link import open_torch_link
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce.encoded import LinkPath
from deft_horovod.runtime.reduce.planned import PlannedReducer, open_link, staged

if TYPE_CHECKING:
    from deft_horovod import _C as native

SECOND_LINK: Final = "second"
_LARGEST_PROBE_BYTES: Final = 16 << 20


@dataclass(frozen=True)
class AskedCosts:
    """What has to be measured besides all-reduces of values as they are."""

    halves: bool = False  # reduce-scatters and all-gathers, on the one link that has them
    formats: tuple[WireFormat, ...] = ()


class Links:
    """Opened when the ranks have met, by the names that plans use."""

    def __init__(self, reduction: Reduction, config: Config) -> None:
        self.opened: Mapping[str, LinkPath] = {}
        # Over torch.distributed, for what no plan carries: that leaves between messages of a plan
        # at other moments on other ranks, and would disturb their order.
        self.unplanned: native.Link | None = None
        self._reduction = reduction
        self._config = config
        self._number = 0
        self._probes = 0

    def open(
        self,
        agreement: Agreement,
        number: int,
        members: Sequence[NamedParameter] = (),
        *,
        encodes: bool = False,
    ) -> None:
        """Ready to carry messages; `number` is that of the optimizer, `members` what it trains.
        `encodes`: some of them may travel in wire formats."""
        self._number = number
        self._probes = 0  # part of names: a rank that has just been started begins at 0
        devices = [member.tensor.device for member in members]
        second = self._config.second_interface
        if OVER_TORCH:
            link = self._over_torch(devices, "planned")
            self.unplanned = self._over_torch(devices, "unplanned")
        else:
            link = open_link(self._reduction, devices)
        meshed = encodes and self._reduction.process_set.size() > 1
        self.opened = {HOROVOD_LINK: LinkPath(link, self._mesh(agreement) if meshed else None)}
        if second:
            way = self._reduction, second, self._config.deadline_s, agreement
            link = staged(open_second_link(*way), devices)
            mesh = open_mesh(*way) if meshed else None
            self.opened = {**self.opened, SECOND_LINK: LinkPath(link, mesh)}

    def _mesh(self, agreement: Agreement) -> native.MeshLink | None:
        deadline_s = self._config.deadline_s
        if OVER_TORCH:
            return open_torch_mesh(f"deft.{self._number}.mesh", deadline_s)
        return open_mesh_beside_horovod(self._reduction, deadline_s, agreement)

    def _over_torch(self, devices: Sequence[torch.device], use: str) -> native.Link:
        name = f"deft.{self._number}.{use}"
        return open_torch_link(self._reduction, devices, name, self._config.deadline_s)

    @property
    def links(self) -> Mapping[str, native.Link]:
        """For messages that travel as they are."""
        return {name: path.link for name, path in self.opened.items()}

    def close(self) -> None:
        """What they were opened for is gone."""
        self.opened, self.unplanned = {}, None

    def probe(
        self, agreement: Agreement, members: Sequence[NamedParameter], asked: AskedCosts
    ) -> tuple[LinkProfile, ...]:
        """What each link costs, measured now; with nothing else in flight."""
        self._probes += 1
        # Small tensors travel together, so a message may be as large as all of them.
        total = sum(m.tensor.numel() * m.tensor.element_size() for m in members)
        allowance = Allowance(
            budget_s=self._config.probe_s,
            deadline_s=self._config.deadline_s,
            largest_bytes=min(max(total, 1 << 16), _LARGEST_PROBE_BYTES),
            rank=self._reduction.process_set.rank(),
            size=self._reduction.process_set.size(),
            device=max(members, key=lambda m: m.tensor.numel()).tensor.device,
        )
        prefix = f"deft.{self._number}.probe.{self._probes}"
        halves_of = HOROVOD_LINK if asked.halves else None
        profiles = probe_links(agreement, self.links, prefix, allowance, halves_of)
        return probe_formats(agreement, self.opened, prefix, allowance, profiles, asked.formats)

    def cost(self, agreement: Agreement, planned: PlannedReducer) -> LinkCost | None:
        """What a message costs, told from those of a plan that has ended. None: they were too few.

        On a GPU messages are handed over before their gradients are computed, so their times say
        little of the link; there it is measured, with nothing else in flight.
        """
        if not any(member.tensor.is_cuda for member in planned.members):
            return planned.link_cost()
        first, *_ = self.probe(agreement, planned.members, AskedCosts())
        return first.cost
