"""Ranks that already meet over Horovod connect once more, over one interface.

All of them open a process group together. The deciding rank starts a store on the interface and
tells the others where, then all connect. Before each step goes on, every rank knows how it went on
all of them, so that either all get a group or all raise the same error.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import psutil
import torch.distributed

from deft_horovod.errors import ConfigError, DeftError, NotSupportedError, explain
from deft_horovod.runtime.links.torch_link import MESSAGE_SHARE
from deft_horovod.runtime.ranks.agreement import Agreement

# Torch annotates only part of what is there.
_DISTRIBUTED: Final[Any] = torch.distributed
# Of the deadline. A rank that fails at once waits for the others with all of it, and the store
# takes up to half as long again as it is told.
STEP_SHARE: Final = 0.25


@dataclass(frozen=True)
class Purpose:
    """What the connections are for, as errors say it."""

    name: str  # "the second link"
    unset: str  # how to do without: "leave second_interface empty"


class Rendezvous:
    """One attempt of all ranks to connect."""

    def __init__(
        self, process_set: Any, interface: str, purpose: Purpose, agreement: Agreement
    ) -> None:
        self._process_set = process_set
        self._interface = interface
        self._purpose = purpose
        self._agreement = agreement
        self._store: Any = None
        self._group: Any = None

    def group(self, deadline_s: float, step_s: float) -> Any:
        """A process group that nothing else refers to. `step_s`: what each step may take,
        `deadline_s`: what a rank waits for another later.

        Raises:
            ConfigError: the interface cannot be used on some rank; says on which, and why.
            NotSupportedError: some rank's torch has no Gloo.
            DeftError: the ranks could not connect over the interface.
            WaitTimeoutError: a rank did not come.
        """
        limit = timedelta(seconds=step_s)
        try:
            # The deciding rank is the lowest.
            place = self._together(lambda: self._prepare(limit))[0]
            self._together(lambda: self._connect(place["host"], place["port"], limit))
            self._group._set_default_timeout(  # noqa: SLF001
                timedelta(seconds=MESSAGE_SHARE * deadline_s)
            )
            return self._group
        finally:
            # Connections live as long as they are referred to, an error refers to this frame.
            self._store = self._group = None

    def _prepare(self, limit: timedelta) -> dict[str, Any]:
        if not (_DISTRIBUTED.is_available() and _DISTRIBUTED.is_gloo_available()):
            raise NotSupportedError("this torch was built without Gloo")
        host = address_of(self._interface)
        if not self._agreement.deciding:
            return {"host": host}
        self._store = _serve(host, limit)
        return {"host": host, "port": self._store.port}

    def _connect(self, host: str, port: int, limit: timedelta) -> dict[str, Any]:
        gloo = _DISTRIBUTED.ProcessGroupGloo
        if self._store is None:
            self._store = _DISTRIBUTED.TCPStore(
                host, port, None, is_master=False, timeout=limit, wait_for_workers=False
            )
        options = gloo._Options()  # noqa: SLF001
        options._devices = [gloo.create_device(interface=self._interface)]  # noqa: SLF001
        options._threads = 1  # noqa: SLF001  (for collectives, one after another)
        options._timeout = limit  # noqa: SLF001
        rank, size = self._process_set.rank(), self._process_set.size()
        self._group = gloo(self._store, rank, size, options)
        return {}

    def _together(self, step: Callable[[], dict[str, Any]]) -> list[dict[str, Any]]:
        """What this step gave on every rank, or the same error on all."""
        try:
            mine = step()
        except Exception as error:  # noqa: BLE001  (whatever it is, all ranks raise it)
            reason = str(error).strip().split("\n", maxsplit=1)[0]
            mine = {"error": type(error).__name__, "reason": reason}
        texts = self._agreement.collect(json.dumps(mine))
        everyone = [json.loads(text) for text in texts]
        ranks = sorted(self._process_set.ranks)
        failures = {r: said for r, said in zip(ranks, everyone, strict=True) if "error" in said}
        if failures:
            raise _error_of(failures, self._interface, self._purpose)
        return everyone


def _serve(host: str, limit: timedelta) -> Any:
    """A store that listens on this address only, at a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        port = listener.getsockname()[1]
        return _DISTRIBUTED.TCPStore(
            host,
            port,
            None,
            is_master=True,
            timeout=limit,
            wait_for_workers=False,
            master_listen_fd=listener.detach(),
        )


def address_of(interface: str) -> str:
    """The address of an interface of this host, IPv4 where it has both.

    Raises:
        ConfigError: there is no such interface, it is down, or it has no address.
    """
    addresses = _addresses()
    if interface not in addresses:
        raise ConfigError(f"there is no such interface; there are {_listed(addresses)}")
    if not psutil.net_if_stats()[interface].isup:
        raise ConfigError(f"it is down; there are {_listed(addresses)}")
    if not addresses[interface]:
        raise ConfigError(f"it has no address; there are {_listed(addresses)}")
    return addresses[interface][0]


def _addresses() -> dict[str, list[str]]:
    """The addresses that other hosts may reach, by interface."""
    found: dict[str, list[str]] = {}
    for name, entries in psutil.net_if_addrs().items():
        internet = [e for e in entries if e.family in (socket.AF_INET, socket.AF_INET6)]
        internet.sort(key=lambda entry: entry.family == socket.AF_INET6)
        # Link-local ones mean nothing without the interface of the other host.
        found[name] = [e.address for e in internet if not e.address.startswith("fe80:")]
    return found


def _listed(addresses: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(
        f"{name} ({found[0]})" if found else f"{name} (no address)"
        for name, found in sorted(addresses.items())
    )


def _error_of(
    failures: Mapping[int, Mapping[str, str]], interface: str, purpose: Purpose
) -> DeftError:
    """The same on all ranks: of the kind of the first failure, with all of them."""
    observed = "\n".join(f"rank {rank}: {said['reason']}" for rank, said in failures.items())
    kind = next(iter(failures.values()))["error"]
    if kind == ConfigError.__name__:
        return ConfigError(
            explain(
                f"{purpose.name} cannot use the interface '{interface}'",
                observed=observed,
                expected="an interface of this name on every host, up and with an address",
                action=f"name one that all hosts have, or {purpose.unset}",
            )
        )
    if kind == NotSupportedError.__name__:
        return NotSupportedError(
            explain(
                f"{purpose.name} needs torch.distributed with Gloo",
                observed=observed,
                action=f"install such a torch, or {purpose.unset}",
            )
        )
    return DeftError(
        explain(
            f"the ranks could not connect over the interface '{interface}'",
            observed=observed,
            expected="every host reaches every other over it",
            action=f"look at routes and firewalls between these hosts, or {purpose.unset}",
        )
    )
