"""An optimizer is gated only if it treats each parameter on its own, which unknown ones show."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from deft_horovod.errors import NotSupportedError
from deft_horovod.runtime.reduce.coupling import is_partial, require_partial

KNOWN = ("SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD")


def parameters() -> list[nn.Parameter]:
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(shape)) for shape in ((5, 7), (7,), (), (9, 3, 2))]


class Renamed(torch.optim.AdamW):
    """Another class with the same update."""


class GlobalNorm(torch.optim.SGD):
    """Clips all gradients together, where they are large."""

    def step(self, closure=None):
        nn.utils.clip_grad_norm_([p for g in self.param_groups for p in g["params"]], 10.0)
        return super().step()


class CountsCalls(torch.optim.SGD):
    """Warms up by its own count of calls."""

    calls = 0

    def step(self, closure=None):
        self.calls += 1
        for group in self.param_groups:
            group["lr"] = 0.1 * min(1.0, self.calls / 5)
        return super().step()


class WritesOptions(torch.optim.SGD):
    """Keeps an estimate among the options of its group, and does not use it in the first steps."""

    def step(self, closure=None):
        for group in self.param_groups:
            group["seen"] = group.get("seen", 0) + 1
        return super().step()


class Noisy(torch.optim.SGD):
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.add_(torch.randn(p.shape))
        return super().step()


class NeedsClosure(torch.optim.SGD):
    def step(self, closure):
        return super().step(closure)


@pytest.mark.parametrize("name", KNOWN)
def test_torchs_own_are_known(name):
    assert is_partial(getattr(torch.optim, name)(parameters(), lr=0.1))


def test_a_class_of_the_users_is_tried():
    assert is_partial(Renamed(parameters(), lr=0.1))


@pytest.mark.parametrize("kind", [GlobalNorm, CountsCalls, WritesOptions, Noisy, NeedsClosure])
def test_what_couples_parameters_is_found_out(kind):
    assert not is_partial(kind(parameters(), lr=0.1))


def test_an_optimizer_with_one_parameter_may_still_count():
    assert is_partial(Renamed(parameters()[:1], lr=0.1))


def test_trying_leaves_no_trace():
    tensors = parameters()
    optimizer = Renamed(tensors, lr=torch.tensor(0.1))
    tensors[0].grad = torch.ones_like(tensors[0])
    before = [t.detach().clone() for t in tensors]
    state = torch.random.get_rng_state()
    calls: list[str] = []
    optimizer.register_step_post_hook(lambda *_: calls.append("hook"))
    assert is_partial(optimizer)
    assert all(torch.equal(a, b) for a, b in zip(tensors, before, strict=True))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert optimizer.state == {}
    assert calls == []
    assert [t.grad is None for t in tensors] == [False, True, True, True]


def test_an_optimizer_that_cannot_be_copied_is_not_gated():
    optimizer = Renamed(parameters(), lr=0.1)
    optimizer.file = Path(__file__).open()  # noqa: SIM115
    try:
        assert not is_partial(optimizer)
    finally:
        optimizer.file.close()


def test_a_refusal_names_the_class_and_what_to_do():
    for optimizer in (torch.optim.LBFGS(parameters()), GlobalNorm(parameters(), lr=0.1)):
        with pytest.raises(NotSupportedError, match=type(optimizer).__name__) as caught:
            require_partial(optimizer, "priority")
        assert "'bucket'" in str(caught.value)
    require_partial(torch.optim.SGD(parameters(), lr=1.0), "priority")
