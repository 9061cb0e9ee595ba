"""Our operations inside of what users switch on."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from deft_horovod.runtime.reduce.plain_torch import plain_torch


class Ours(torch.nn.Module):
    """Updates its parameter in the middle of a forward."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3))
        self.wanted = True

    def forward(self, x):
        if self.wanted:
            self.wanted = False
            with plain_torch(), torch.no_grad():
                self.weight.add_(1.0)
        return (x * self.weight).sum()


def call(model, x):
    return model(x)


def under_fake_tensors(model, x):
    with FakeTensorMode(allow_non_fake_inputs=True):
        return model(x)


WAYS = {
    "nothing": call,
    "grad": lambda model, x: torch.func.grad(model)(x),
    "jacrev": lambda model, x: torch.func.jacrev(model)(x),
    "vmap": lambda model, x: torch.vmap(model)(torch.stack([x, x])),
    "fake": under_fake_tensors,
    "trace": lambda model, x: torch.jit.trace(model, x, check_trace=False)(x),
    "fx": lambda model, x: make_fx(model)(x)(x),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_an_update_is_done_once_and_for_good(way):
    model = Ours()
    way(model, torch.ones(3))
    assert model.weight.tolist() == [1.0] * 3
    assert float(call(model, torch.ones(3))) == 3.0


@pytest.mark.filterwarnings("ignore")
def test_it_is_no_part_of_what_is_traced():
    graph = make_fx(Ours())(torch.ones(3)).graph
    assert not any("add_" in str(node.target) for node in graph.nodes)


def test_what_was_switched_on_is_on_again():
    with torch.device("meta"):
        with plain_torch():
            assert torch.zeros(1).device.type == "cpu"
        assert torch.zeros(1).device.type == "meta"
