"""One rank with the real Horovod: what is handed in comes back as its own average."""

import gc
import warnings
import weakref
from types import SimpleNamespace

import horovod.torch as stock
import pytest
import torch

from deft_horovod.errors import DeftError, WaitTimeoutError
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce.rests import Rests
from deft_horovod.runtime.reduce.stock import (
    StockHooks,
    StockReducer,
    _Called,
    _CalledSparse,
    _Linked,
)


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


def reduction(**changes):
    fields = {
        "op": stock.Sum,
        "compression": stock.Compression.none,
        "predivide": 1.0,
        "sparse_as_dense": False,
        "process_set": stock.global_process_set,
    }
    return Reduction(**(fields | changes))


def members(*names):
    made = []
    for i, name in enumerate(names):
        tensor = torch.nn.Parameter(torch.zeros(2, 3))
        tensor.grad = torch.full((2, 3), float(i + 1))
        made.append(NamedParameter(name, tensor))
    return made


def test_a_missing_gradient_becomes_zeros_and_the_others_keep_their_memory():
    mine = members("a", "b")
    mine[0].tensor.grad = None
    kept = mine[1].tensor.grad
    StockReducer(mine, reduction(), "unit.1", 10.0).finish()
    assert torch.equal(mine[0].tensor.grad, torch.zeros(2, 3))
    assert mine[1].tensor.grad is kept
    assert torch.equal(kept, torch.full((2, 3), 2.0))


@pytest.mark.parametrize("groups", [[], [(0, 1)]])
def test_what_a_plan_before_has_left_travels_with_the_next_gradient(groups):
    mine = members("a", "b", "c")
    mine[0].tensor.grad = None
    mine[2].tensor.requires_grad_(False)
    rests = Rests()
    rests.restore({"values": {name: torch.full((6,), 4.0) for name in "abc"}})
    reducer = StockReducer(mine, reduction(), f"unit.15.{len(groups)}", 10.0, groups, rests)
    for extra in (4.0, 0.0):
        mine[0].tensor.grad = None
        mine[1].tensor.grad = torch.full((2, 3), 2.0)
        reducer.finish()
        assert torch.equal(mine[0].tensor.grad, torch.full((2, 3), extra))
        assert torch.equal(mine[1].tensor.grad, torch.full((2, 3), 2.0 + extra))
    assert sorted(rests.to_state()["values"]) == ["c"], "it does not train"


def test_a_group_leaves_when_all_of_it_is_there():
    reducer = StockReducer(members("a", "b", "c"), reduction(), "unit.2", 10.0, [(0, 2)])
    reducer.send(0)
    assert reducer._sent == {}
    reducer.send(2)
    assert list(reducer._sent) == [(0, 2)]
    reducer.finish()
    assert reducer._sent == {}


def test_a_gradient_that_is_completed_twice_is_refused_by_name():
    reducer = StockReducer(members("a"), reduction(), "unit.3", 10.0)
    reducer.send(0)
    with pytest.raises(DeftError, match="tensor 'a'"):
        reducer.send(0)
    reducer.finish()


@pytest.mark.parametrize("groups", [[], [(0, 1)]])
def test_gradients_that_the_script_writes_to_on_their_way_are_told_of_by_name_at_once(groups):
    mine = members("a", "b", "c")
    reducer = StockReducer(mine, reduction(), f"unit.16.{len(groups)}", 10.0, groups)
    for index in (0, 1, 2):
        reducer.send(index)
    for changed in mine[1:]:
        changed.tensor.grad.mul_(1.0)
    with pytest.warns(UserWarning, match="tensor 'b, c'") as warned:
        reducer.finish()
    assert len(warned) == 1
    mine[1].tensor.grad.mul_(0.5)  # an average: the script may
    for index in (0, 1, 2):
        reducer.send(index)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reducer.finish()


@pytest.mark.parametrize("as_dense", [False, True])
def test_sparse_gradients_stay_sparse(as_dense):
    mine = members("table")
    sparse = torch.sparse_coo_tensor([[1]], [[1.0, 2.0, 3.0]], (2, 3))
    mine[0].tensor.grad = sparse
    StockReducer(mine, reduction(sparse_as_dense=as_dense), f"unit.4.{as_dense}", 10.0).finish()
    assert mine[0].tensor.grad.is_sparse
    assert torch.equal(mine[0].tensor.grad.to_dense(), sparse.to_dense())


def test_hooks_count_passes_and_vanish_with_their_owner():
    mine = members("a")
    mine[0].tensor.grad = None
    reducer = StockReducer(mine, reduction(), "unit.5", 10.0)
    hooks = StockHooks(reducer, passes_per_step=2)
    mine[0].tensor.sum().backward()
    assert reducer._sent == {}
    mine[0].tensor.sum().backward()
    assert list(reducer._sent) == [(0,)]
    reducer.finish()
    hooks.reset()
    hooks.detach()
    mine[0].tensor.sum().backward()
    mine[0].tensor.sum().backward()
    assert reducer._sent == {}


def hooked(name, passes=1):
    mine = members("a")
    mine[0].tensor.grad = None
    return mine[0].tensor, StockHooks(StockReducer(mine, reduction(), name, 10.0), passes)


@pytest.mark.parametrize("passes", [1, 3])
def test_a_users_hook_that_comes_later_runs_before_the_gradient_leaves(passes):
    tensor, hooks = hooked(f"unit.6.{passes}", passes)

    def replace(p):
        p.grad = p.grad + 10.0

    tensor.register_post_accumulate_grad_hook(replace)
    for _ in range(passes):
        tensor.sum().backward()
    hooks.reducer.finish()
    assert torch.equal(tensor.grad, torch.full((2, 3), 11.0 * passes))


def test_hooks_stay_while_nothing_else_keeps_the_node():
    tensor, hooks = hooked("unit.7")
    gc.collect()
    tensor.sum().backward()
    assert list(hooks.reducer._sent) == [(0,)]
    hooks.reducer.finish()


def test_hooks_are_made_where_no_gradients_are():
    with torch.no_grad():
        tensor, hooks = hooked("unit.8")
    tensor.sum().backward()
    assert list(hooks.reducer._sent) == [(0,)]
    hooks.reducer.finish()


def test_parameters_do_not_keep_hooks_that_nobody_uses():
    tensor, hooks = hooked("unit.9")
    seen = weakref.ref(hooks.reducer)
    graph = tensor.sum()  # knows the node, and so the hook
    del hooks
    gc.collect()
    assert seen() is None
    graph.backward()
    assert torch.equal(tensor.grad, torch.ones(2, 3))


class Doubled(stock.Compression.none):
    """A compression of somebody else's."""

    @staticmethod
    def compress(tensor):
        return tensor.double(), tensor.dtype

    @staticmethod
    def decompress(tensor, context):
        return tensor.to(context)


@pytest.mark.parametrize(
    ("changes", "groups", "kind"),
    [
        ({}, [], _Linked),
        ({"op": stock.Average}, [], _Linked),
        ({"op": stock.Average, "predivide": 2.0}, [], _Linked),
        ({"compression": stock.Compression.fp16}, [], _Linked),
        ({"compression": Doubled}, [], _Linked),
        ({"op": stock.Max}, [], _Called),
        ({}, [(0,)], _Called),
    ],
)
def test_what_our_link_can_carry_takes_it_and_all_come_back(changes, groups, kind):
    mine = members("a")
    name = f"unit.10.{sorted(map(str, changes))}.{len(groups)}"
    reducer = StockReducer(mine, reduction(**changes), name, 10.0, groups)
    reducer.send(0)
    ((message, _),) = reducer._sent.values()
    assert type(message) is kind
    reducer.finish()
    assert torch.equal(mine[0].tensor.grad, torch.ones(2, 3))
    assert mine[0].tensor.grad.dtype == torch.float32


@pytest.mark.parametrize(
    ("gradient", "kind"),
    [
        (torch.ones(2, 3).to_sparse(), _CalledSparse),
        (torch.ones(2, 3, dtype=torch.int32), _Called),
        (torch.ones(3, 2).t(), _Linked),
    ],
)
def test_gradients_of_every_kind_come_back(gradient, kind):
    mine = [NamedParameter("a", torch.zeros(2, 3, dtype=gradient.dtype))]
    mine[0].tensor.grad = gradient
    reducer = StockReducer(mine, reduction(), f"unit.11.{kind.__name__}", 10.0)
    reducer.send(0)
    ((message, _),) = reducer._sent.values()
    assert type(message) is kind
    reducer.finish()
    assert torch.equal(mine[0].tensor.grad.to_dense(), torch.ones(2, 3).to(gradient.dtype))


class Message:
    """One on its way, for ever or to a failure."""

    def __init__(self, failure=""):
        self.failure = failure

    def arrives(self, deadline_s):
        return bool(self.failure)

    def result(self):
        raise stock.HorovodInternalError(self.failure)


def test_one_that_does_not_arrive_is_named_and_waited_for_again():
    reducer = StockReducer(members("a"), reduction(), "unit.12", 0.25)
    reducer.send(0)
    reducer._sent[0,] = (Message(), [None])
    for _ in range(2):
        with pytest.raises(WaitTimeoutError, match=r"within 0\.25 s(.|\n)*tensor 'a'"):
            reducer.finish()


def test_one_that_failed_is_not_waited_for_again():
    reducer = StockReducer(members("a"), reduction(), "unit.13", 0.25)
    reducer.send(0)
    reducer._sent[0,] = (Message("a peer died"), [None])
    with pytest.raises(stock.HorovodInternalError, match="a peer died"):
        reducer.finish()
    assert reducer._sent == {}


def test_what_our_link_could_not_send_is_horovods_own_error():
    unknown = SimpleNamespace(process_set_id=99)
    reducer = StockReducer(members("a"), reduction(process_set=unknown), "unit.14", 10.0)
    reducer.send(0)
    with pytest.raises(stock.HorovodInternalError, match="Process set provided does not exist"):
        reducer.finish()
