"""What is measured in which format; tests/parallel has the real link."""

from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.plan.formats import owners
from deft_horovod.profile import LinkCost, LinkProfile
from deft_horovod.profile.probe_plan import probe_plan
from deft_horovod.runtime.links import format_probe
from deft_horovod.runtime.links.message_stream import Allowance
from tests.unit.support.solo import Solo

PROFILES = (
    LinkProfile(name="horovod", cost=LinkCost(alpha_us=900.0, beta_us_per_byte=0.01)),
    LinkProfile(name="second", cost=LinkCost(alpha_us=500.0, beta_us_per_byte=0.05)),
)
PATHS = dict.fromkeys(["horovod", "second"])


def test_alone_or_without_formats_nothing_is_measured():
    for size, formats in ((1, ("int8",)), (2, ())):
        allowance = Allowance(size=size)
        found = format_probe.probe_formats(Solo(), PATHS, "unit", allowance, PROFILES, formats)
        assert found == PROFILES


def test_each_link_is_measured_in_each_format(monkeypatch):
    streams = []

    def measured(agreement, stream, plan, allowance):
        streams.append(stream)
        assert allowance.budget_s == 1.0
        return plan.sizes_bytes

    def agreed(agreement, samples):
        costs = [LinkCost(alpha_us=float(i), beta_us_per_byte=i / 8) for i in range(len(samples))]
        return [type("Fit", (), {"cost": cost}) for cost in costs]

    monkeypatch.setattr(format_probe, "measure", measured)
    monkeypatch.setattr(format_probe, "agree", agreed)
    monkeypatch.setattr(format_probe, "_encoded_link", lambda *of: of)
    allowance = Allowance(size=2, budget_s=2.0, largest_bytes=1 << 20)
    found = format_probe.probe_formats(Solo(), PATHS, "unit", allowance, PROFILES, ("f16", "int8"))
    assert len(streams) == 4
    told = [[(one.format, one.cost.alpha_us) for one in link.formats] for link in found]
    assert told == [[("f16", 0.0), ("int8", 1.0)], [("f16", 2.0), ("int8", 3.0)]]
    codec = [(one.encode_us_per_byte, one.decode_us_per_byte) for one in found[0].formats]
    assert codec == [(0.5, 0.625), (0.75, 0.875)]
    assert codec == [(one.encode_us_per_byte, one.decode_us_per_byte) for one in found[1].formats]
    assert [link.cost for link in found] == [link.cost for link in PROFILES]


@given(
    st.floats(1.0, 1e4), st.floats(1e-5, 0.2), st.integers(2, 16), st.sampled_from(["f16", "int4"])
)
def test_where_there_are_owners_only_messages_that_have_them_are_measured(
    alpha_us, beta_us, ranks, wire_format
):
    cost = LinkCost(alpha_us=alpha_us, beta_us_per_byte=beta_us)
    plan = probe_plan(cost, 64 << 20, 1e6)
    found = format_probe._with_owners(plan, wire_format, cost, ranks)
    assert found.sizes_bytes[-1] == plan.sizes_bytes[-1]
    if found == plan:
        return
    assert ranks > 2
    assert 3 <= len(found.sizes_bytes) <= len(plan.sizes_bytes)
    second = cost.start_up_bytes(ranks)
    for size in found.sizes_bytes:
        assert size % 16 == 0
        assert owners(wire_format, (size + 12) // 4, ranks, second) == ranks
    assert found.sizes_bytes[-1] >= 4 * found.sizes_bytes[0]


def test_a_slow_link_between_four_ranks_is_measured_in_two_stages():
    cost = LinkCost(alpha_us=600.0, beta_us_per_byte=0.13)  # 100 Mbit/s
    plan = probe_plan(cost, 64 << 20, 5e5)
    assert format_probe._with_owners(plan, "int8", cost, 4) != plan
    assert format_probe._with_owners(plan, "int8", cost, 2) == plan
