"""Tenants: jobs that must keep a throughput, and with what they do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deft_horovod.capacity.problem.machine_kind import MachineKind, ranks_within


@dataclass(frozen=True)
class Offer:
    """So many ranks on machines of a kind are fast enough."""

    kind: int  # index among the kinds
    ranks: int
    together: bool  # on one machine; else on several of its kind, whose links they need


@dataclass(frozen=True)
class Tenant:
    """One job."""

    name: str
    memory_bytes: int  # of each rank
    offers: tuple[Offer, ...]


@dataclass(frozen=True)
class Tenants:
    """Everything that the methods are told."""

    tenants: tuple[Tenant, ...]
    kinds: tuple[MachineKind, ...]

    def room(self, tenant: Tenant, kind: int) -> int:
        """How many of its ranks an empty machine has room for."""
        machine = self.kinds[kind]
        return ranks_within(machine.ranks, machine.memory_bytes, tenant.memory_bytes)

    def share(self, tenant: Tenant, offer: Offer) -> float:
        """Machines that it takes by ranks or by memory, whichever is more."""
        machine = self.kinds[offer.kind]
        memory = tenant.memory_bytes / machine.memory_bytes if machine.memory_bytes else 0.0
        return offer.ranks * max(1.0 / machine.ranks, memory)

    def least(self, tenant: Tenant) -> Offer:
        """That which takes least of a machine; on one machine where that is no more."""
        return min(
            tenant.offers,
            key=lambda offer: (self.share(tenant, offer), not offer.together, offer.kind),
        )

    def decreasing(self) -> list[int]:
        """Those that take most first."""

        def share(index: int) -> float:
            tenant = self.tenants[index]
            return self.share(tenant, self.least(tenant)) if tenant.offers else 0.0

        return sorted(range(len(self.tenants)), key=lambda index: (-share(index), index))

    def ready(self) -> Tenants:
        """The same with virtual machines that are ready: each tenant's parts are chosen for it
        alone, before anything is placed."""
        kept = (
            replace(one, offers=(self.least(one),) if one.offers else ()) for one in self.tenants
        )
        return replace(self, tenants=tuple(kept))
