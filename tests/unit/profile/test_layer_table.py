import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod.base.format_bytes import FormatBytes
from deft_horovod.cli.inputs import parameters_of
from deft_horovod.profile import FormatCost, LinkCost, ModuleProfile, Profile
from deft_horovod.profile.layer_table import layer_table
from tests.unit.support.example import BLOCKS, COST, profile

INT8 = LinkCost(alpha_us=1_500.0, beta_us_per_byte=0.0012)


def example(**options):
    one = profile(**options)
    return one, layer_table(one, parameters_of(one))


def test_each_parameter_is_in_one_row():
    _, table = example()
    assert [row.name for row in table.rows] == [
        "embedding",
        *(f"blocks.{n}" for n in range(BLOCKS)),
        "scale",
    ]
    assert [row.number for row in table.rows] == list(range(1, BLOCKS + 3))
    assert sum(row.parameters for row in table.rows) == 2 * BLOCKS + 2
    assert table.rows[-1].type == "parameter"


def test_rows_add_up_to_the_totals():
    one, table = example(links=("horovod", "second"))
    assert sum(row.bytes for row in table.rows) == table.bytes
    assert sum(row.share for row in table.rows) == pytest.approx(1.0)
    assert sum(row.backward_us for row in table.rows) == pytest.approx(max(one.ready_us))
    for link in ("horovod", "second"):
        total_us = sum(row.communication_us[link] for row in table.rows)
        assert table.communication_us[link] == pytest.approx(total_us)


def test_totals_are_those_of_the_profile():
    _, table = example()
    assert table.compute_us == 195_000.0
    assert table.exposed_us == 55_000.0
    total_us = table.communication_us["horovod"]
    assert total_us == COST.alpha_us * len(table.rows) + COST.beta_us_per_byte * table.bytes
    assert table.coverage_rate == total_us / 195_000.0


def test_what_was_not_measured_is_not_told():
    one = profile(links=()).model_copy(update={"step_us": 0.0})
    table = layer_table(one, parameters_of(one))
    totals = table.to_data()["totals"]
    assert (table.coverage_rate, table.exposed_us) == (None, 0.0)
    assert (totals["stock_step_us"], totals["stock_exposed_us"]) == (None, None)


def test_a_shared_parameter_belongs_to_the_first_module():
    head = ModuleProfile(name="head", type="Linear", forward_us=9.0, parameters=(0,))
    one = profile()
    one = one.model_copy(update={"modules": (*one.modules, head)})
    rows = layer_table(one, parameters_of(one)).rows
    assert "head" not in [row.name for row in rows]
    assert rows[0].parameters == 1


def test_the_model_itself_may_own_parameters():
    root = ModuleProfile(name="", type="Model", forward_us=1.0, parameters=(0,))
    one = profile().model_copy(update={"modules": (root,)})
    assert layer_table(one, parameters_of(one)).rows[0].name == "(model)"


def test_data_is_json():
    _, table = example(links=("horovod", "second"))
    data = json.loads(json.dumps(table.to_data(), allow_nan=False))
    assert len(data["layers"]) == len(table.rows)
    assert set(data["layers"][0]["communication_us"]) == {"horovod", "second"}


def _shares(one, **of_weights):
    """Matrices travel like this, everything else as it is."""
    found = []
    for parameter in parameters_of(one):
        whole = FormatBytes(parameter.bytes, parameter.bytes)
        sent = {name: FormatBytes(*sizes(parameter.bytes)) for name, sizes in of_weights.items()}
        found.append({"f32": whole} if parameter.exact else sent)
    return found


def test_under_a_plan_a_row_says_how_its_gradients_travel():
    one = profile(formats=(FormatCost(format="int8", cost=INT8),))
    table = layer_table(one, parameters_of(one), _shares(one, int8=lambda size: (size, size // 4)))
    embedding, block = table.rows[:2]
    assert embedding.formats == {"int8": FormatBytes(16_000_000, 4_000_000)}
    assert embedding.communication_us == {"horovod": INT8.time_us(16_000_000)}
    assert [*block.formats] == ["int8", "f32"]
    assert block.formats["f32"] == FormatBytes(4_000, 4_000)
    weight_us = INT8.time_us(6_000_000)
    assert block.communication_us["horovod"] == weight_us + COST.beta_us_per_byte * 4_000
    whole = sum(row.bytes for row in table.rows)
    assert sum(part.bytes for part in table.formats.values()) == whole
    assert json.loads(json.dumps(table.to_data()))["totals"]["formats"]["int8"] == {
        "bytes": 40_000_000,
        "message_bytes": 10_000_000,
    }


def test_what_was_not_measured_in_a_format_counts_as_it_is():
    one = profile()
    table = layer_table(one, parameters_of(one), _shares(one, int4=lambda size: (size, size // 8)))
    assert table.rows[0].communication_us["horovod"] == COST.time_us(16_000_000)


def test_all_exact_is_as_without_a_plan():
    one, plain = example()
    exact = [{"f32": FormatBytes(p.bytes, p.bytes)} for p in parameters_of(one)]
    table = layer_table(one, parameters_of(one), exact)
    assert table.communication_us == plain.communication_us
    assert table.formats == {"f32": FormatBytes(table.bytes, table.bytes)}
    assert plain.formats == {}
    assert plain.rows[0].formats == {}


@settings(max_examples=50)
@given(st.data())
def test_whatever_the_order_rows_add_up(data):
    base = profile()
    count = len(base.ready_order)
    order = data.draw(st.permutations(range(count)))
    times = data.draw(st.lists(st.floats(0, 1e6), min_size=count, max_size=count))
    one = Profile(**{**dict(base), "ready_order": tuple(order), "ready_us": tuple(times)})
    table = layer_table(one, parameters_of(one))
    assert sum(row.backward_us for row in table.rows) == pytest.approx(max(times))
    assert all(row.backward_us >= 0.0 for row in table.rows)
    assert max(row.ready_us for row in table.rows) == max(times)
