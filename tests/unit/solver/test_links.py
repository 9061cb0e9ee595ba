import pytest

from deft_horovod.profile import LinkCost, LinkProfile
from deft_horovod.solver.links import bytes_per_us, costs_of, link_sets
from tests.unit.support.models import request

PROFILE = request("vgg19", 1.0).profile


def with_links(*costs):
    """(alone, beside the others) in microseconds a byte."""
    names = ("horovod", "gloo", "third")
    links = tuple(
        LinkProfile(
            name=name,
            cost=LinkCost(alpha_us=1.0, beta_us_per_byte=alone),
            busy_cost=LinkCost(alpha_us=1.0, beta_us_per_byte=busy),
        )
        for name, (alone, busy) in zip(names, costs, strict=False)
    )
    return PROFILE.model_copy(update={"links": links})


def test_links_side_by_side_cost_what_they_do_when_busy():
    profile = with_links((1.0, 9.0), (2.0, 2.0))
    (alone,), (busy, _) = costs_of(profile, (0,)), costs_of(profile, (0, 1))
    assert (alone.beta_us_per_byte, busy.beta_us_per_byte) == (1.0, 9.0)
    without = profile.links[0].model_copy(update={"busy_cost": None})
    profile = profile.model_copy(update={"links": (without, profile.links[1])})
    assert costs_of(profile, (0, 1))[0] == alone


def test_rates_add_up():
    profile = with_links((1.0, 2.0), (1.0, 4.0))
    assert bytes_per_us(profile, (0,)) == 1.0
    assert bytes_per_us(profile, (0, 1)) == 0.75


@pytest.mark.parametrize(
    ("costs", "sets"),
    [
        ([(1.0, 1.0)], [(0,)]),
        ([(1.0, 1.0), (2.0, 2.0)], [(0,), (0, 1)]),
        ([(1.0, 2.0), (1.0, 2.5)], [(0,)]),  # they share one network card
        ([(1.0, 1.5), (1.0, 1.5), (9.0, 9.0)], [(0,), (0, 1, 2)]),
    ],
)
def test_links_that_add_nothing_together_are_not_used(costs, sets):
    profile = with_links(*costs)
    assert link_sets(profile, only_if_faster=True) == sets
    alone = len(profile.links) == 1
    assert link_sets(profile, only_if_faster=False) == [
        (0,),
        *([] if alone else [tuple(range(len(profile.links)))]),
    ]
