"""What is found in a set-up, and what is advised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.doctor.diagnosis import diagnose, wire_mbit
from deft_horovod.doctor.machine import Checkup, Machine, Nic
from deft_horovod.profile import LinkCost, LinkProfile

VERSIONS = {"python": "3.11.7", "horovod": "0.28.1", "torch": "2.13.0"}
GOOD = {
    "host": "a",
    "versions": VERSIONS,
    "transports": ("Gloo",),
    "cores": 4,
    "ranks_on_host": 1,
    "threads": 2,
    "load": 1.0,
    "environment": {},
    "nics": (
        Nic(name="eth0", mtu=1500, speed_mbit=1000, addresses=("10.0.0.1",), carried_bytes=9),
        Nic(name="lo", mtu=65536, speed_mbit=0, addresses=("127.0.0.1",), loopback=True),
    ),
}
# 900 Mbit/s sent by each of two ranks.
LINK = LinkProfile(name="horovod", cost=LinkCost(alpha_us=900.0, beta_us_per_byte=8 / 900))


def checkup(*changes, link=LINK):
    """One rank on each host; what is not changed is as it should be."""
    hosts = [{"host": f"host{rank}", **change} for rank, change in enumerate(changes or ({}, {}))]
    machines = tuple(Machine(rank=r, **{**GOOD, **change}) for r, change in enumerate(hosts))
    return Checkup(machines=machines, links=() if link is None else (link,))


def test_where_all_is_well_it_says_what_there_is():
    found = diagnose(checkup())
    assert {finding.level for finding in found} == {"ok"}
    assert not any(finding.advice for finding in found)
    told = " | ".join(finding.text for finding in found)
    for part in (
        "horovod 0.28.1",
        "Horovod has Gloo",
        "1 rank with 2 threads each on 4 cores",
        "host1: traffic goes over eth0 (1000 Mbit/s, MTU 1500)",
        "0.90 ms a message, then 900 Mbit/s sent by each of 2 ranks",
    ):
        assert part in told


def nic(**changes):
    return {"nics": (GOOD["nics"][0].model_copy(update=changes), GOOD["nics"][1])}


TEN = Nic(name="eth1", mtu=9000, speed_mbit=10_000, addresses=("10.1.0.1",))


@pytest.mark.parametrize(
    ("change", "level", "subject", "text", "advice"),
    [
        ({"versions": {**VERSIONS, "torch": "2.12"}}, "problem", "versions", "torch", "same"),
        ({"extension": "does not load"}, "problem", "extension", "rank 1: does not load", ""),
        ({"cores": 1}, "note", "cores", "on 1 cores", "OMP_NUM_THREADS=1"),
        ({"cores": 2, "ranks_on_host": 4}, "note", "cores", "4 ranks", "OMP_NUM_THREADS=1"),
        ({"load": 4.5}, "note", "cores", "4.5 processes wanted", "nothing else runs"),
        (nic(mtu=9000), "problem", "MTU", "1500, 9000", "same MTU"),
        (
            {"nics": (*GOOD["nics"], TEN)},
            "note",
            "interface",
            "over eth0",
            "--network-interfaces eth1",
        ),
        (nic(speed_mbit=25_000), "note", "interface", "25000 Mbit/s", "9000 bytes"),
        (nic(speed_mbit=25_000), "ok", "link horovod", "900 Mbit/s", ""),
        ({"environment": {"DEFT_POLICY": "x"}}, "problem", "settings", "DEFT_POLICY", "same"),
    ],
)
def test_what_is_wrong_on_one_rank_is_found(change, level, subject, text, advice):
    found = diagnose(checkup({}, change))
    (finding,) = [f for f in found if (f.level, f.subject) == (level, subject) and text in f.text]
    assert advice in finding.advice


@pytest.mark.parametrize(
    ("environment", "level", "text"),
    [
        ({"HOROVOD_CYCLE_TIME": "50"}, "note", "50 ms"),
        ({"HOROVOD_CACHE_CAPACITY": "0"}, "problem", "negotiated anew"),
        ({"HOROVOD_AUTOTUNE": "1"}, "note", "AUTOTUNE"),
    ],
)
def test_settings_that_cost_time_are_found(environment, level, text):
    found = diagnose(checkup({"environment": environment}, {"environment": environment}))
    assert [f for f in found if f.level == level and f.subject == "settings" and text in f.text]


@pytest.mark.parametrize(
    "environment",
    [{"HOROVOD_CYCLE_TIME": "1"}, {"HOROVOD_CYCLE_TIME": "many"}, {"HOROVOD_AUTOTUNE": "0"}],
)
def test_settings_that_cost_nothing_are_not(environment):
    found = diagnose(checkup({"environment": environment}, {"environment": environment}))
    assert {finding.level for finding in found} == {"ok"}


def test_what_the_launcher_tells_each_rank_may_differ():
    ranks = [{"environment": {"HOROVOD_RANK": str(r), "HOROVOD_LOCAL_RANK": "0"}} for r in (0, 1)]
    assert {finding.level for finding in diagnose(checkup(*ranks))} == {"ok"}


@pytest.mark.parametrize(
    ("cost", "advice"),
    [
        (LinkCost(alpha_us=900.0, beta_us_per_byte=8 / 400), "the interface has 1000 Mbit/s"),
        (LinkCost(alpha_us=9_000.0, beta_us_per_byte=8 / 900), "start within a few ms"),
    ],
)
def test_links_slower_than_their_interface_are_found(cost, advice):
    found = diagnose(checkup(link=LinkProfile(name="horovod", cost=cost)))
    (finding,) = [f for f in found if f.subject == "link horovod"]
    assert finding.level == "note"
    assert advice in finding.advice


def test_missing_packages_are_a_problem():
    versions = {**VERSIONS, "torch": ""}
    found = diagnose(checkup({"versions": versions}, {"versions": versions}))
    assert found[0].level == "problem"
    assert "not installed: torch" in found[0].text


def test_a_rank_alone_has_no_link():
    subjects = {f.subject for f in diagnose(checkup({}, link=None))}
    assert not any(subject.startswith("link") for subject in subjects)


@given(st.integers(2, 512), st.floats(1e-6, 10.0))
def test_what_goes_round_a_ring_is_between_one_and_two_times_the_data(ranks, beta):
    link = LinkProfile(name="x", cost=LinkCost(alpha_us=0.0, beta_us_per_byte=beta))
    of_data = wire_mbit(link, ranks) * beta / 8
    assert 1.0 - 1e-9 <= of_data < 2.0
