"""Models and gradients out of the ordinary, and what reads parameters that are held back."""

from __future__ import annotations

import copy
from typing import Any

import horovod.torch as stock
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint

import deft_horovod.torch as hvd
from tests.parallel.scripts.training import (
    Data,
    assert_equal,
    assert_equal_models,
    cnn,
    equal_on_all_ranks,
    loss_of,
    make_model,
    mlp,
)
from tests.parallel.scripts.twins import SIZES, Twins, adam, main, ours_of, plain_sgd

STEPS = 8


def case_channels_last(policy: str) -> None:
    """Horovod's own refuses such gradients, so the reference is a copy in the usual layout."""
    model, reference = make_model("channels_last"), cnn()
    optimizer = ours_of(model, policy)
    expected = stock.DistributedOptimizer(
        optimizer.inner.__class__(reference.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01),
        [(f"channels.{n}", p) for n, p in reference.named_parameters()],
    )
    data = Data("cnn")
    for step in range(STEPS):
        batch = data.next()
        for some_model, some in ((model, optimizer), (reference, expected)):
            some.zero_grad()
            loss_of(some_model, batch).backward()
            some.step()
        optimizer.flush()
        assert equal_on_all_ranks(model.parameters()), f"step {step}"
    weight = model.get_parameter("0.weight")
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert not weight.is_contiguous()
    # Convolutions of the two layouts round differently.
    for a, b in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(a.contiguous(), b, rtol=1e-4, atol=1e-5)


def case_a_channels_last_layer_is_unfrozen(policy: str) -> None:
    """In that step its gradients are in no plan yet."""
    model, data = make_model("channels_last"), Data("channels_last")
    first = model.get_parameter("0.weight").requires_grad_(False)
    before = first.detach().clone()
    optimizer = ours_of(model, policy)
    for step in range(STEPS):
        optimizer.flush()
        first.requires_grad_(step >= 4)
        optimizer.zero_grad()
        loss_of(model, data.next()).backward()
        optimizer.step()
        optimizer.flush()
        assert torch.equal(first, before) == (step < 4), f"step {step}"
        assert equal_on_all_ranks(model.parameters()), f"step {step}"


def case_bfloat16(policy: str) -> None:
    """Averaged in float32 and rounded once. Horovod's own has no bfloat16 at all."""
    model, data = mlp().bfloat16(), Data()
    optimizer = ours_of(model, policy)
    for step in range(STEPS):
        inputs, targets = data.next()
        optimizer.zero_grad()
        loss_of(model, (inputs.bfloat16(), targets)).backward()
        local = [p.grad.float() for p in model.parameters() if p.grad is not None]
        expected = [stock.allreduce(g, name=f"bf16.{i}").bfloat16() for i, g in enumerate(local)]
        optimizer.synchronize()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        assert {g.dtype for g in gradients} == {torch.bfloat16}
        assert_equal(gradients, expected, f"step {step}")
        with optimizer.skip_synchronize():
            optimizer.step()
        assert equal_on_all_ranks(model.parameters()), f"step {step}"


def case_a_bfloat16_layer_is_unfrozen(policy: str) -> None:
    """In that step its gradients are in no plan yet, and go the stock way."""
    model, data = mlp().bfloat16(), Data()
    first = model.get_parameter("0.weight").requires_grad_(False)
    before = first.detach().clone()
    optimizer = ours_of(model, policy)
    for step in range(STEPS):
        optimizer.flush()
        first.requires_grad_(step >= 4)
        inputs, targets = data.next()
        optimizer.zero_grad()
        loss_of(model, (inputs.bfloat16(), targets)).backward()
        optimizer.step()
        optimizer.flush()
        assert torch.equal(first, before) == (step < 4), f"step {step}"
        assert equal_on_all_ranks(model.parameters()), f"step {step}"


class _Checkpointed(nn.Module):
    """Forward of the middle runs again inside backward."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.reentrant = reentrant
        self.first = nn.Linear(7, 20)
        self.middle = nn.Sequential(nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 20))
        self.last = nn.Linear(20, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(x))
        x = checkpoint(self.middle, x, use_reentrant=self.reentrant)
        return self.last(x)


def case_activation_checkpointing(policy: str) -> None:
    for reentrant in (False, True):
        twins, data = Twins(policy, lambda r=reentrant: _Checkpointed(r)), Data()
        twins.train(data, STEPS)
        twins.check(f"reentrant={reentrant}")


def case_compiled_model(policy: str) -> None:
    twins, data = Twins(policy), Data()
    compiled = [torch.compile(model, backend="aot_eager") for model, _ in twins]
    for _ in range(STEPS):
        batch = data.next()
        for model, (_, optimizer) in zip(compiled, twins, strict=True):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
    twins.check()


class _Coarse(stock.Compression.none):  # type: ignore[misc]
    """A user's own compression: rounds to multiples of 2^-10, and counts."""

    calls = 0

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        cls.calls += 1
        return torch.round(tensor * 1024).half(), tensor.dtype

    @classmethod
    def decompress(cls, tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor.to(ctx) / 1024


def case_compression_of_the_users_own(policy: str) -> None:
    _Coarse.calls = 0
    twins, data = Twins(policy, compression=_Coarse), Data()
    twins.train(data, STEPS)
    twins.check()
    assert _Coarse.calls == 2 * STEPS * len(list(twins.model.parameters()))


def case_gradient_hooks_of_the_user(policy: str) -> None:
    def with_hooks() -> nn.Module:
        model = mlp()
        for i, parameter in enumerate(model.parameters()):
            parameter.register_hook(lambda g, i=i: g * (1 + i % 3))

        def halve(parameter: torch.Tensor) -> None:
            assert parameter.grad is not None
            parameter.grad.mul_(0.5)

        model.get_parameter("2.weight").register_post_accumulate_grad_hook(halve)
        return model

    twins, data = Twins(policy, with_hooks), Data()
    twins.train(data, STEPS)
    twins.check()


def case_zero_grad_between_forward_and_backward(policy: str) -> None:
    twins, data = Twins(policy), Data()
    for _ in range(STEPS):
        batch = data.next()
        for model, optimizer in twins:
            loss = loss_of(model, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    twins.check()


def case_evaluation_between_steps(policy: str) -> None:
    """It sees the updated parameters, however it calls the model."""
    twins, data = Twins(policy, cnn), Data("cnn")
    probe = Data("cnn", rank=7).next()[0]
    for step in range(2 * STEPS):
        twins.train(data, 1)
        outputs = []
        for model, _ in twins:
            model.eval()
            way = step % 4
            with torch.no_grad() if way < 2 else torch.inference_mode():
                outputs.append(model(probe) if way != 1 else model[:5](probe))
            model.train()
        assert torch.equal(*outputs), f"step {step}"
    twins.check()


def case_weights_saved_right_after_step(policy: str) -> None:
    twins, data = Twins(policy), Data()
    for step in range(STEPS):
        twins.train(data, 1)
        states = [{k: v.clone() for k, v in model.state_dict().items()} for model, _ in twins]
        assert_equal(states[0].values(), states[1].values(), f"step {step}")
    twins.check()


def case_averaged_weights_of_a_copy(policy: str) -> None:
    """A copy of the model has no gates, and training it does not disturb the original."""
    twins, data = Twins(policy), Data()
    twins.train(data, 6)
    twins.optimizer.flush()
    twin = copy.deepcopy(twins.model)
    loss_of(twin, data.next()).backward()
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(1.0)
    twins.train(data, 4)
    twins.check()


class _Bypassing(nn.Module):
    """Uses the parameters of a module that it never calls, and calls another one twice."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(6)
        self.twice = nn.Linear(7, 7)
        self.never_called = nn.Linear(7, 30)
        self.scale = nn.Parameter(torch.ones(30))
        self.last = nn.Linear(30, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.twice(torch.tanh(self.twice(x)))
        x = F.linear(x, self.never_called.weight, self.never_called.bias)
        return self.last(torch.tanh(x) * self.scale)


def case_parameters_used_outside_of_their_module(policy: str) -> None:
    twins, data = Twins(policy, _Bypassing, adam), Data()
    twins.train(data, 2 * STEPS)
    twins.check()


def case_layers_called_without_their_model(policy: str) -> None:
    """No outermost module is ever called: the loop goes through the layers itself."""
    twins, data = Twins(policy), Data()
    for _ in range(2 * STEPS):
        inputs, targets = data.next()
        for model, optimizer in twins:
            optimizer.zero_grad()
            x = inputs
            for layer in model:
                x = layer(x)
            F.mse_loss(x, targets).backward()
            optimizer.step()
    twins.check()


def case_scripted_modules(policy: str) -> None:
    """They take no hooks. What torch.jit fuses differs from copy to copy, so last bits do."""

    def make() -> nn.Module:
        torch.manual_seed(5)
        inside = torch.jit.script(nn.Sequential(nn.Linear(20, 20), nn.Tanh()))
        return nn.Sequential(nn.Linear(7, 20), inside, nn.Linear(20, 4))

    for wrap in (lambda model: model, torch.jit.script):
        twins = Twins(policy, lambda wrap=wrap: wrap(make()))
        twins.train(Data(), STEPS)
        twins.optimizer.flush()
        assert equal_on_all_ranks(twins.model.parameters())
        for a, b in zip(twins.model.parameters(), twins.reference.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def case_a_part_of_the_model_trains_by_itself(policy: str) -> None:
    """The first steps call all of it, so nothing else was seen to be called from outside."""
    twins, data = Twins(policy, mlp, plain_sgd), Data()
    for step in range(2 * STEPS):
        x, y = data.next()
        for model, optimizer in twins:
            optimizer.zero_grad()
            if step >= 4 and step % 2:
                model[0](x).square().mean().backward()
            else:
                loss_of(model, (x, y)).backward()
            optimizer.step()
    twins.check()


def case_one_rank_reads_options_before_its_step(policy: str) -> None:
    """Neither averages nor whether a rank wants a new plan may be known earlier there."""
    twins, data = Twins(policy, mlp), Data()
    for _ in range(2 * STEPS):
        batch = data.next()
        for model, optimizer in twins:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            if stock.rank() == 0 and model is twins.model:
                assert optimizer.param_groups[0]["lr"] > 0.0
            optimizer.step()
    twins.check()


def case_parameters_without_any_module(policy: str) -> None:
    """Nothing says when they are used next, so nothing of theirs is held back."""

    def train(wrap: Any) -> list[torch.Tensor]:
        torch.manual_seed(7)
        parameters = [nn.Parameter(torch.randn(7, 20)), nn.Parameter(torch.randn(20, 4))]
        optimizer = wrap(torch.optim.SGD(parameters, lr=0.05, momentum=0.9))
        data = Data()
        for _ in range(STEPS):
            inputs, targets = data.next()
            optimizer.zero_grad()
            F.mse_loss(torch.tanh(inputs @ parameters[0]) @ parameters[1], targets).backward()
            optimizer.step()
        return [p.detach() for p in parameters]

    ours = train(lambda o: hvd.DistributedOptimizer(o, policy=policy, config=SIZES))
    assert_equal(ours, train(stock.DistributedOptimizer), "parameters without a name")


def case_a_validation_loss_with_gradients(policy: str) -> None:
    """A forward with gradients enabled that no backward follows."""
    twins, data = Twins(policy), Data()
    for _ in range(STEPS):
        twins.train(data, 1)
        batch = data.next()
        losses = [loss_of(model, batch).item() for model, _ in twins]
        assert losses[0] == losses[1]
    twins.check()


def case_half_precision_parameters_and_clipping_by_value(policy: str) -> None:
    twins, data = Twins(policy, lambda: make_model("mixed")), Data()
    for _ in range(STEPS):
        batch = data.next()
        for model, optimizer in twins:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.synchronize()
            nn.utils.clip_grad_value_(model.parameters(), 0.01)
            with optimizer.skip_synchronize():
                optimizer.step()
    twins.check()
    assert_equal_models(twins.model, twins.reference)


if __name__ == "__main__":
    main(globals())
