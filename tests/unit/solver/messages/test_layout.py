import random

from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.parameter import WIRE_ITEM_BYTES
from deft_horovod.plan import Bucket
from deft_horovod.solver.messages.layout import lay_out, order_with_groups
from tests.unit.support.planning import (
    assert_carried_once,
    groupings,
    make_parameters,
    many_parameters,
)


@given(many_parameters(), st.integers())
def test_every_parameter_has_a_slot_of_its_own(parameters, seed):
    order = list(range(len(parameters)))
    random.Random(seed).shuffle(order)
    layout = lay_out(parameters, order)
    one_bucket_each = [
        Bucket(arena=number, begin=0, end=arena.elements)
        for number, arena in enumerate(layout.arenas)
    ]
    assert_carried_once(parameters, layout.arenas, layout.slots, one_bucket_each)
    for spans in layout.spans:
        position = [order.index(span.parameter) for span in spans[:50]]
        assert position == sorted(position)
    for arena, spans in zip(layout.arenas, layout.spans, strict=True):
        for span in spans:
            slot = layout.slots[span.parameter]
            padding_bytes = (span.end - slot.end) * WIRE_ITEM_BYTES[arena.wire]
            assert span.begin == slot.begin
            assert 0 <= padding_bytes < 16


def test_positions_of_a_small_model():
    layout = lay_out(make_parameters([5, 0, 1]), [2, 0, 1])
    assert [(slot.begin, slot.end) for slot in layout.slots] == [(8, 17), (20, 24), (0, 5)]
    assert layout.arenas[0].elements == 24


def test_arenas_keep_their_numbers_when_the_order_changes():
    parameters = make_parameters([4], "float64", "float64") + make_parameters([4])
    for order in ([0, 1], [1, 0]):
        assert [arena.dtype for arena in lay_out(parameters, order).arenas] == [
            "float64",
            "float32",
        ]


def test_no_parameters_no_arenas():
    layout = lay_out((), ())
    assert (layout.arenas, layout.slots, layout.spans) == ((), (), ())


@given(st.data())
def test_groups_stand_side_by_side_where_their_last_member_stood(data):
    count = data.draw(st.integers(0, 30))
    order = data.draw(st.permutations(range(count)))
    groups = data.draw(groupings(count))
    result = order_with_groups(order, groups)
    assert sorted(result) == list(range(count))
    for group in groups:
        places = sorted(result.index(index) for index in group)
        assert places == list(range(places[0], places[0] + len(group)))
        assert result[places[-1]] == max(group, key=order.index)
    grouped = {index for group in groups for index in group}
    lone = [index for index in order if index not in grouped]
    assert [index for index in result if index not in grouped] == lone
