"""Machines as they are written."""

import pytest

from deft_horovod.capacity.input.entry import load
from deft_horovod.capacity.input.machine_entry import own_machine, rented_machine
from deft_horovod.errors import ConfigError

OWN = {"name": "lab", "ranks": 2, "memory": "8GB"}
RENTED = {**OWN, "price_per_hour": 1.5, "limit": 3}


def entry(tmp_path, fields):
    path = tmp_path / "machine.yaml"
    path.write_text("\n".join(f"{k}: {v}" for k, v in fields.items()), encoding="utf-8")
    return load(path)


def test_links_are_those_between_machines_and_inside(tmp_path):
    machine = own_machine(entry(tmp_path, {**OWN, "link": "5gbit", "inner_link": "40gbit"}))
    assert machine.site(2, together=True).rate_bits_per_s == 40e9
    assert machine.site(4, together=False).rate_bits_per_s == 5e9
    assert machine.kind.is_own
    assert machine.kind.count == 1


def test_without_links_those_of_the_profile_count(tmp_path):
    machine = own_machine(entry(tmp_path, OWN))
    assert machine.site(2, together=True).rate_bits_per_s is None
    alike = own_machine(entry(tmp_path, {**OWN, "link": "5gbit"}))
    assert alike.site(2, together=True).rate_bits_per_s == 5e9


def test_rented_machines_have_a_price(tmp_path):
    fields = {**RENTED, "start_up": "5min", "billed": "1h", "speed": 1.3}
    kind = rented_machine(entry(tmp_path, fields)).kind
    assert (kind.price_per_hour, kind.start_up_s, kind.billed_s, kind.count) == (1.5, 300, 3600, 3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"price_per_hour": -1}, "a price is 0 or more"),
        ({"limit": 0}, "not a whole number from 1 on"),
        ({"limit": 5_000}, "more than 1,000 machines"),
        ({"count": 3}, "machine lab has no 'count'"),
        ({"link": "fast"}, "is not a rate"),
        ({"speed": 0}, "not more than 0"),
    ],
)
def test_mistakes_say_what_to_change(tmp_path, change, said):
    with pytest.raises(ConfigError) as raised:
        rented_machine(entry(tmp_path, {**RENTED, **change}))
    assert said in str(raised.value)
    assert ", line " in str(raised.value)
