"""Choosing the address of an interface; opening is tested under horovodrun."""

import socket
from types import SimpleNamespace

import psutil
import pytest

from deft_horovod.errors import ConfigError, DeftError, NotSupportedError
from deft_horovod.runtime.links.rendezvous import Purpose, _error_of, address_of

V4, V6, HARDWARE = socket.AF_INET, socket.AF_INET6, socket.AF_PACKET
HOST = {
    "both": [(HARDWARE, "02:00:00:00:00:01"), (V6, "fd00::2"), (V4, "10.0.0.2")],
    "new": [(V6, "fe80::1%new"), (V6, "fd00::3")],
    "bare": [(HARDWARE, "02:00:00:00:00:02"), (V6, "fe80::2%bare")],
    "down": [(V4, "10.0.0.4")],
}
LISTED = "bare (no address), both (10.0.0.2), down (10.0.0.4), new (fd00::3)"


@pytest.fixture(autouse=True)
def host(monkeypatch):
    addresses = {
        name: [SimpleNamespace(family=family, address=address) for family, address in found]
        for name, found in HOST.items()
    }
    states = {name: SimpleNamespace(isup=name != "down") for name in HOST}
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: addresses)
    monkeypatch.setattr(psutil, "net_if_stats", lambda: states)


@pytest.mark.parametrize(("interface", "address"), [("both", "10.0.0.2"), ("new", "fd00::3")])
def test_an_address_that_other_hosts_can_reach(interface, address):
    assert address_of(interface) == address


@pytest.mark.parametrize(
    ("interface", "reason"),
    [("eth7", "no such interface"), ("", "no such"), ("down", "down"), ("bare", "no address")],
)
def test_an_interface_that_cannot_be_used_is_refused_with_what_there_is(interface, reason):
    with pytest.raises(ConfigError, match=reason) as refused:
        address_of(interface)
    assert str(refused.value).endswith(f"there are {LISTED}")


@pytest.mark.parametrize("kind", [ConfigError, NotSupportedError, DeftError])
def test_the_error_is_of_the_kind_of_the_first_failure_and_names_every_rank(kind):
    failures = {
        1: {"error": kind.__name__, "reason": "the first"},
        3: {"error": "RuntimeError", "reason": "timed out"},
    }
    error = _error_of(failures, "eth1", Purpose("the second link", "leave it empty"))
    assert type(error) is kind
    assert "observed: rank 1: the first\n            rank 3: timed out" in str(error)
    assert "leave it empty" in str(error)
