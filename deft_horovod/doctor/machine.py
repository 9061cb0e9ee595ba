"""What a rank runs on, as far as it matters for communication; data, and read without torch."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Final, Literal

import psutil

from deft_horovod.base.record import Count, Flag, Index, Name, Part, Record
from deft_horovod.config import Config
from deft_horovod.profile import LinkProfile

PACKAGES: Final = ("deft_horovod", "horovod", "torch", "ortools", "numpy")
_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)


class Nic(Part):
    """A network interface that is up."""

    name: Name
    mtu: Index
    speed_mbit: Index  # as the driver says; 0: it does not
    addresses: tuple[str, ...]
    loopback: Flag = False
    carried_bytes: Count = 0  # in both directions, while links were measured


class Machine(Part):
    """Of one rank."""

    rank: Index
    host: Name
    versions: dict[str, str]
    extension: str = ""  # what is wrong with it
    transports: tuple[str, ...] = ()  # that Horovod was built with
    cores: Index  # this process may use
    ranks_on_host: Index = 1
    threads: Index  # of torch
    load: float  # processes that ran or waited for a core, in the last minute
    environment: dict[str, str]
    nics: tuple[Nic, ...]

    @property
    def carrier(self) -> Nic | None:
        """The interface over which the traffic went, if one did most of it."""
        busiest = max(self.nics, key=lambda nic: nic.carried_bytes, default=None)
        return busiest if busiest is not None and busiest.carried_bytes else None


class Checkup(Record):
    """Of all ranks, and of the links between them."""

    version: Literal[1] = 1
    machines: tuple[Machine, ...]
    links: tuple[LinkProfile, ...] = ()


def versions() -> dict[str, str]:
    """Of Python and of the packages that have to fit each other; '' where one is missing."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def nics(carried: Mapping[str, int] | None = None) -> tuple[Nic, ...]:
    """Those that are up and have an address."""
    addresses = psutil.net_if_addrs()
    found = []
    for name, stats in sorted(psutil.net_if_stats().items()):
        own = tuple(a.address for a in addresses.get(name, ()) if a.family in _FAMILIES)
        if not stats.isup or not own:
            continue
        found.append(
            Nic(
                name=name,
                mtu=stats.mtu,
                speed_mbit=max(0, stats.speed) if stats.speed < 10**8 else 0,
                addresses=own,
                loopback="loopback" in stats.flags.split(","),
                carried_bytes=(carried or {}).get(name, 0),
            )
        )
    return tuple(found)


def traffic() -> dict[str, int]:
    """Bytes that each interface has carried so far, in both directions."""
    counted = psutil.net_io_counters(pernic=True)
    return {name: io.bytes_sent + io.bytes_recv for name, io in counted.items()}


def this_machine(
    rank: int = 0,
    *,
    ranks_on_host: int = 1,
    threads: int = 1,
    transports: Iterable[str] = (),
    carried: Mapping[str, int] | None = None,
    extension: str = "",
) -> Machine:
    """Of this process; what it cannot know by itself is given."""
    return Machine(
        rank=rank,
        host=platform.node(),
        versions=versions(),
        extension=extension,
        transports=tuple(transports),
        cores=len(os.sched_getaffinity(0)),
        ranks_on_host=ranks_on_host,
        threads=threads,
        load=os.getloadavg()[0],
        environment=Config.environment(),
        nics=nics(carried),
    )
