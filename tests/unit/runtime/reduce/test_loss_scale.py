"""Loss scales of generations, on one rank with the real executor."""

import horovod.torch as stock
import pytest
import torch

from deft_horovod.runtime.reduce.loss_scale import LossScales
from deft_horovod.runtime.reduce.scaler_call import ScalerCall


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


class Due:
    def __init__(self, slots, first_step, last_step):
        self.slots, self.first_step, self.last_step = slots, first_step, last_step


class NamedParameter:
    def __init__(self, value):
        self.tensor = torch.nn.Parameter(torch.zeros(3))
        self.tensor.grad = torch.full((3,), value)


class Session:
    step = 7


class Scaler:
    def __init__(self, scale):
        self._scale = scale

    def get_scale(self):
        return self._scale


class Reducer:
    """As much of a reducer as unscaling looks at."""

    def __init__(self, *values):
        self.members = [NamedParameter(value) for value in values]
        self.boundary = []
        self.dropped = 0
        self.session = Session()

    def members_of(self, dues):
        return {slot for due in dues for slot in due.slots}


def scales_of(*pairs):
    scales = LossScales()
    for step, scale in pairs:
        scales.note(step, torch.tensor(scale))
    return scales


def test_each_generation_has_the_scale_of_its_own_steps():
    reducer = Reducer(8.0, 32.0)
    scales = scales_of((4, 2.0), (5, 4.0))
    assert scales.unscale(reducer, [Due([0], 4, 4), Due([1], 5, 5)]) == 0
    assert [m.tensor.grad.tolist() for m in reducer.members] == [[4.0] * 3, [8.0] * 3]


def test_a_parameter_in_two_messages_is_unscaled_once():
    reducer = Reducer(8.0)
    assert scales_of((4, 2.0)).unscale(reducer, [Due([0], 4, 4), Due([0], 4, 4)]) == 0
    assert reducer.members[0].tensor.grad.tolist() == [4.0] * 3


def test_a_sum_of_steps_with_one_scale_is_divided_by_it():
    reducer = Reducer(8.0)
    assert scales_of((4, 2.0), (5, 2.0)).unscale(reducer, [Due([0], 4, 5)]) == 0
    assert reducer.members[0].tensor.grad.tolist() == [4.0] * 3


def test_a_sum_of_steps_with_different_scales_is_dropped():
    reducer = Reducer(8.0)
    assert scales_of((4, 2.0), (5, 4.0)).unscale(reducer, [Due([0], 4, 5)]) == 1
    assert reducer.members[0].tensor.grad is None


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_what_overflowed_is_dropped(bad):
    reducer = Reducer(bad, 2.0)
    assert scales_of((0, 2.0)).unscale(reducer, [Due([0], 0, 0), Due([1], 0, 0)]) == 1
    assert reducer.members[0].tensor.grad is None
    assert reducer.members[1].tensor.grad.tolist() == [1.0] * 3


def test_a_script_that_unscales_finds_gradients_of_its_own_scale():
    reducer = Reducer(8.0, 32.0)
    reducer.boundary = [Due([0], 5, 5), Due([1], 6, 6)]
    scales = scales_of((5, 2.0))
    call = ScalerCall(Scaler(4.0), unscales=True)
    scales.meet(reducer, call)
    assert [m.tensor.grad.tolist() for m in reducer.members] == [[16.0] * 3, [32.0] * 3]
    scales.meet(reducer, call)  # looks once more
    for member in reducer.members:
        member.tensor.grad /= 4.0  # as the scaler does
    scales.unscale_boundary(reducer, None, [])
    assert [m.tensor.grad.tolist() for m in reducer.members] == [[4.0] * 3, [8.0] * 3]
    assert reducer.dropped == 0


def test_an_overflow_survives_until_the_scaler_has_seen_it():
    reducer = Reducer(float("inf"), 8.0)
    reducer.boundary = [Due([0], 5, 5), Due([1], 6, 6)]
    scales = scales_of((5, 2.0))
    scales.meet(reducer, ScalerCall(Scaler(4.0), unscales=True))
    assert not reducer.members[0].tensor.grad.isfinite().any()
    scales.unscale_boundary(reducer, None, [])
    assert reducer.members[0].tensor.grad is None
    assert reducer.dropped == 1


def test_what_has_gone_the_stock_way_has_the_scale_of_this_step():
    reducer = Reducer(8.0)
    reducer.boundary = [Due([0], 5, 5)]
    scales = scales_of((5, 2.0))
    dense, sparse, infinite, unused = (
        NamedParameter(value).tensor for value in (4.0, 4.0, 1.0, 0.0)
    )
    sparse.grad = sparse.grad.to_sparse()
    infinite.grad[1] = float("inf")
    unused.grad = None
    everyone = [reducer.members[0].tensor, dense, sparse, infinite, unused]
    scales.unscale_boundary(reducer, torch.tensor(4.0), everyone)
    assert reducer.members[0].tensor.grad.tolist() == [4.0] * 3
    assert dense.grad.tolist() == sparse.grad.to_dense().tolist() == [1.0] * 3
    assert infinite.grad is None
    assert unused.grad is None


def test_what_is_shown_to_the_scaler_is_taken_back():
    reducer = Reducer(1.0)
    looks = ScalerCall(Scaler(4.0), unscales=False)
    reducer.members[0].tensor.grad = None
    scales = LossScales()
    scales.meet(reducer, looks)
    assert reducer.members[0].tensor.grad.tolist() == [0.0] * 3
    scales.hide()
    assert reducer.members[0].tensor.grad is None
    reducer.members[0].tensor.grad = torch.ones(3)
    scales.meet(reducer, looks)
    scales.hide()
    assert reducer.members[0].tensor.grad.tolist() == [1.0] * 3


def test_a_checkpoint_keeps_them():
    scales = scales_of((4, 2.0), (5, 4.0))
    other = LossScales()
    assert not other.used
    other.restore(scales.to_state())
    assert other.to_state() == scales.to_state()
    assert other.used
