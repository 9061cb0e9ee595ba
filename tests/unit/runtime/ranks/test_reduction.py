import horovod.torch as stock
import pytest

from deft_horovod.base.parameter import WIRE_ITEM_BYTES, WIRES
from deft_horovod.runtime.ranks.reduction import Reduction


def reduction(op=stock.Average, compression=stock.Compression.none, predivide=1.0):
    return Reduction(op, compression, predivide, False, stock.global_process_set)


@pytest.mark.parametrize("factor", [1.0, 2.0, 0.5])
def test_predivision_divides_before_and_multiplies_after(factor):
    way = reduction(predivide=factor)
    assert way.prescale * way.postscale == pytest.approx(1.0)
    assert way.prescale == 1.0 / factor


def test_a_sum_is_not_scaled():
    way = reduction(op=stock.Sum)
    assert (way.prescale, way.postscale) == (1.0, 1.0)


class Halves(stock.Compression.none):
    """A user's own compression."""


@pytest.mark.parametrize(
    ("way", "plannable"),
    [
        (reduction(), True),
        (reduction(op=stock.Sum), True),
        (reduction(compression=stock.Compression.fp16), True),
        (reduction(op=stock.Adasum), False),
        (reduction(op=stock.Min), False),
        (reduction(compression=Halves), False),
    ],
)
def test_what_our_messages_carry(way, plannable):
    assert way.plannable is plannable


@pytest.mark.parametrize("dtype", WIRES)
def test_wires_are_dtypes_that_travel(dtype):
    assert reduction().wire(dtype) in WIRE_ITEM_BYTES
    assert reduction(compression=stock.Compression.fp16).wire(dtype) == "float16"


@pytest.mark.parametrize("dtype", ["complex64", "int64", "float8_e4m3fn"])
def test_other_dtypes_have_no_wire(dtype):
    assert reduction().wire(dtype) is None
    assert reduction(compression=stock.Compression.fp16).wire(dtype) is None


@pytest.mark.parametrize(
    "other",
    [
        reduction(op=stock.Sum),
        reduction(compression=stock.Compression.fp16),
        reduction(compression=Halves),
        reduction(predivide=2.0),
        Reduction(stock.Average, stock.Compression.none, 1.0, True, stock.global_process_set),
    ],
)
def test_every_difference_shows_in_the_facts(other):
    assert reduction().facts() == reduction().facts()
    assert reduction().facts() != other.facts()
