from types import SimpleNamespace

import pytest

from deft_horovod.config import Config
from deft_horovod.profile import LinkCost, LinkProfile
from deft_horovod.runtime.links import links as module
from deft_horovod.runtime.links.links import Links

SEEN = LinkCost(alpha_us=900.0, beta_us_per_byte=0.9)
MEASURED = LinkCost(alpha_us=100.0, beta_us_per_byte=0.1)


@pytest.fixture
def links(monkeypatch):
    made = Links(None, Config())
    measured = (LinkProfile(name="horovod", cost=MEASURED), LinkProfile(name="second", cost=SEEN))
    monkeypatch.setattr(made, "probe", lambda agreement, members, asked: measured)
    return made


def plan_of(*on_gpu):
    members = [SimpleNamespace(tensor=SimpleNamespace(is_cuda=is_cuda)) for is_cuda in on_gpu]
    return SimpleNamespace(members=members, link_cost=lambda: SEEN)


def test_on_the_host_messages_say_what_they_cost(links):
    assert links.cost(None, plan_of(False, False)) == SEEN


def test_on_a_gpu_they_were_handed_over_too_early_to_say_it(links):
    assert links.cost(None, plan_of(False, True)) == MEASURED


@pytest.mark.parametrize(
    ("size", "encodes", "meshed"), [(1, True, 0), (2, True, 1), (3, True, 1), (3, False, 0)]
)
def test_ranks_have_a_mesh_if_they_may_encode(monkeypatch, size, encodes, meshed):
    made = []
    process_set = SimpleNamespace(size=lambda: size)
    monkeypatch.setattr(module, "open_link", lambda reduction, devices: "link")
    monkeypatch.setattr(module, "open_mesh_beside_horovod", lambda *of: made.append(of))
    links = Links(SimpleNamespace(process_set=process_set), Config())
    links.open(None, 0, encodes=encodes)
    assert len(made) == meshed
    assert links.links == {"horovod": "link"}
