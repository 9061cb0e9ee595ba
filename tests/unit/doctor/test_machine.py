"""What is read from the machine that the tests run on."""

import os

from deft_horovod.doctor import machine as module
from deft_horovod.doctor.machine import Checkup, nics, this_machine, traffic, versions


def test_this_machine_has_what_it_needs_to_run_this_test():
    machine = this_machine(3, ranks_on_host=2, threads=5, transports=["Gloo"])
    assert (machine.rank, machine.ranks_on_host, machine.threads) == (3, 2, 5)
    assert 1 <= machine.cores <= (os.cpu_count() or 1)
    assert all(machine.versions[name] for name in ("python", "torch", "horovod", "deft_horovod"))
    assert Checkup.from_json(Checkup(machines=(machine,)).to_json()).machines == (machine,)


def test_a_package_that_is_missing_is_told(monkeypatch):
    monkeypatch.setattr(module, "PACKAGES", ("none-of-this-name",))
    assert versions()["none-of-this-name"] == ""


def test_the_carrier_is_the_interface_with_most_of_the_traffic():
    names = [nic.name for nic in nics()]
    assert names, "not even a loopback interface"
    assert set(names) <= set(traffic())
    assert this_machine().carrier is None
    carrier = this_machine(carried={names[-1]: 100}).carrier
    assert carrier is not None
    assert (carrier.name, carrier.carried_bytes) == (names[-1], 100)


def test_settings_of_communication_are_told_and_no_others(monkeypatch):
    monkeypatch.setenv("HOROVOD_CYCLE_TIME", "2")
    monkeypatch.setenv("SECRET", "mine")
    environment = this_machine().environment
    assert environment["HOROVOD_CYCLE_TIME"] == "2"
    assert "SECRET" not in environment
