import horovod.torch as stock
import pytest

from deft_horovod.base.parameter import WIRE_ITEM_BYTES, WIRES
from deft_horovod.runtime.ranks.reduction import Channel


def channel(op=stock.Average, compression=stock.Compression.none, predivide=1.0):
    return Channel(op, compression, predivide, False, stock.global_process_set)


@pytest.mark.parametrize("factor", [1.0, 2.0, 0.5])
def test_predivision_divides_before_and_multiplies_after(factor):
    way = channel(predivide=factor)
    assert way.prescale * way.postscale == pytest.approx(1.0)
    assert way.prescale == 1.0 / factor


def test_a_sum_is_not_scaled():
    way = channel(op=stock.Sum)
    assert (way.prescale, way.postscale) == (1.0, 1.0)


class Halves(stock.Compression.none):
    """A user's own compression."""


@pytest.mark.parametrize(
    ("way", "plannable"),
    [
        (channel(), True),
        (channel(op=stock.Sum), True),
        (channel(compression=stock.Compression.fp16), True),
        (channel(op=stock.Adasum), False),
        (channel(op=stock.Min), False),
        (channel(compression=Halves), False),
    ],
)
def test_what_our_messages_carry(way, plannable):
    assert way.plannable is plannable


@pytest.mark.parametrize("dtype", WIRES)
def test_wires_are_dtypes_that_travel(dtype):
    assert channel().wire(dtype) in WIRE_ITEM_BYTES
    assert channel(compression=stock.Compression.fp16).wire(dtype) == "float16"


@pytest.mark.parametrize("dtype", ["complex64", "int64", "float8_e4m3fn"])
def test_other_dtypes_have_no_wire(dtype):
    assert channel().wire(dtype) is None
    assert channel(compression=stock.Compression.fp16).wire(dtype) is None


@pytest.mark.parametrize(
    "other",
    [
        channel(op=stock.Sum),
        channel(compression=stock.Compression.fp16),
        channel(compression=Halves),
        channel(predivide=2.0),
        Channel(stock.Average, stock.Compression.none, 1.0, True, stock.global_process_set),
    ],
)
def test_every_difference_shows_in_the_facts(other):
    assert channel().facts() == channel().facts()
    assert channel().facts() != other.facts()
