"""One rank with the real Horovod: what is handed in comes back as its own average."""

import horovod.torch as stock
import pytest
import torch

from deft_horovod.errors import DeftError
from deft_horovod.runtime.channel import Channel
from deft_horovod.runtime.members import Member
from deft_horovod.runtime.stock_reducer import StockHooks, StockReducer


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


def channel(**changes):
    fields = {
        "op": stock.Sum,
        "compression": stock.Compression.none,
        "predivide": 1.0,
        "sparse_as_dense": False,
        "process_set": stock.global_process_set,
    }
    return Channel(**(fields | changes))


def members(*names):
    made = []
    for i, name in enumerate(names):
        tensor = torch.nn.Parameter(torch.zeros(2, 3))
        tensor.grad = torch.full((2, 3), float(i + 1))
        made.append(Member(name, tensor))
    return made


def test_a_missing_gradient_becomes_zeros_and_the_others_keep_their_memory():
    mine = members("a", "b")
    mine[0].tensor.grad = None
    kept = mine[1].tensor.grad
    StockReducer(mine, channel(), "unit.1", 10.0).finish()
    assert torch.equal(mine[0].tensor.grad, torch.zeros(2, 3))
    assert mine[1].tensor.grad is kept
    assert torch.equal(kept, torch.full((2, 3), 2.0))


def test_a_group_leaves_when_all_of_it_is_there():
    reducer = StockReducer(members("a", "b", "c"), channel(), "unit.2", 10.0, [(0, 2)])
    reducer.send(0)
    assert reducer._sent == {}
    reducer.send(2)
    assert list(reducer._sent) == [(0, 2)]
    reducer.finish()
    assert reducer._sent == {}


def test_a_gradient_that_is_completed_twice_is_refused_by_name():
    reducer = StockReducer(members("a"), channel(), "unit.3", 10.0)
    reducer.send(0)
    with pytest.raises(DeftError, match="tensor 'a'"):
        reducer.send(0)
    reducer.finish()


@pytest.mark.parametrize("as_dense", [False, True])
def test_sparse_gradients_stay_sparse(as_dense):
    mine = members("table")
    sparse = torch.sparse_coo_tensor([[1]], [[1.0, 2.0, 3.0]], (2, 3))
    mine[0].tensor.grad = sparse
    StockReducer(mine, channel(sparse_as_dense=as_dense), f"unit.4.{as_dense}", 10.0).finish()
    assert mine[0].tensor.grad.is_sparse
    assert torch.equal(mine[0].tensor.grad.to_dense(), sparse.to_dense())


def test_hooks_count_passes_and_vanish_with_their_owner():
    mine = members("a")
    mine[0].tensor.grad = None
    reducer = StockReducer(mine, channel(), "unit.5", 10.0)
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
