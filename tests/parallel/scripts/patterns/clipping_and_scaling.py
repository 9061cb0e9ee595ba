"""Gradient clipping and automatic mixed precision, as Horovod's documentation writes them."""

from __future__ import annotations

import warnings
from typing import Any

import horovod.torch as stock
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

from tests.parallel.scripts.training import (
    Data,
    assert_equal,
    equal_on_all_ranks,
    gathered,
    loss_of,
    mlp,
)
from tests.parallel.scripts.twins import Twins, adam, main, ours_of

STEPS = 8
_MAX_NORM = 0.1


def _scaler() -> torch.amp.GradScaler:
    return torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)


def _clip(model: nn.Module) -> float:
    norm = float(clip_grad_norm_(model.parameters(), _MAX_NORM))
    assert norm > _MAX_NORM, f"a norm of {norm} is not clipped, so the case shows nothing"
    return norm


def _dance(
    model: nn.Module, optimizer: Any, scaler: torch.amp.GradScaler, loss: torch.Tensor
) -> float:
    """From Horovod's documentation: synchronize, unscale, clip, step without synchronizing."""
    scaler.scale(loss).backward()
    optimizer.synchronize()
    scaler.unscale_(optimizer)
    norm = _clip(model)
    with optimizer.skip_synchronize():
        scaler.step(optimizer)
    scaler.update()
    return norm


def case_clip_between_synchronize_and_step(policy: str) -> None:
    twins, data = Twins(policy), Data()
    for step in range(STEPS):
        batch, norms = data.next(), []
        for model, optimizer in twins:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.synchronize()
            norms.append(_clip(model))
            with optimizer.skip_synchronize():
                optimizer.step()
        assert norms[0] == norms[1], f"step {step}: norms {norms}"
    twins.check()


def case_step_after_synchronize(policy: str) -> None:
    """Without skip_synchronize Horovod reduces again (and warns), which changes nothing."""
    twins, data = Twins(policy), Data()
    for _ in range(STEPS):
        batch = data.next()
        for model, optimizer in twins:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.synchronize()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                optimizer.step()
    twins.check()


def case_clip_without_synchronize(policy: str) -> None:
    """What is changed may be on its way. With a plan that is a copy; the stock way warns."""
    model, data = mlp(), Data()
    optimizer = ours_of(model, policy)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss_of(model, data.next()).backward()
            _clip(model)
            optimizer.step()
    told = [w for w in caught if "gradients were changed" in str(w.message)]
    assert bool(told) == (policy in ("stock", "auto", "least_stale")), told


def case_scaler_with_the_dance(policy: str) -> None:
    twins, data = Twins(policy, optimizer=adam), Data()
    scalers = [_scaler(), _scaler()]
    for _ in range(STEPS):
        batch, norms = data.next(), []
        for (model, optimizer), scaler in zip(twins, scalers, strict=True):
            optimizer.zero_grad()
            norms.append(_dance(model, optimizer, scaler, loss_of(model, batch)))
        assert norms[0] == norms[1]
    assert scalers[0].get_scale() == scalers[1].get_scale() > 1024
    twins.check()


def case_scaler_unscale_and_clip_without_the_dance(policy: str) -> None:
    """The averages are there when the scaler reads the groups to unscale."""
    twins, data = Twins(policy), Data()
    scalers = [_scaler(), _scaler()]
    for _ in range(STEPS):
        batch = data.next()
        model, optimizer = twins.model, twins.optimizer
        optimizer.zero_grad()
        scalers[0].scale(loss_of(model, batch)).backward()
        scalers[0].unscale_(optimizer)
        norm = _clip(model)
        scalers[0].step(optimizer)
        scalers[0].update()
        twins.stock.zero_grad()
        expected = _dance(twins.reference, twins.stock, scalers[1], loss_of(twins.reference, batch))
        assert norm == expected
    twins.check()


def case_scaler_plain(policy: str) -> None:
    """As in a script for one process."""
    twins, data = Twins(policy, backward_passes_per_step=2), Data()
    scalers = [_scaler(), _scaler()]
    for _ in range(STEPS):
        batches = [data.next(), data.next()]
        for (model, optimizer), scaler in zip(twins, scalers, strict=True):
            optimizer.zero_grad()
            for batch in batches:
                scaler.scale(loss_of(model, batch)).backward()
            if optimizer is twins.stock:  # Horovod's needs it; ours does it by itself
                optimizer.synchronize()
                scaler.unscale_(optimizer)
                with optimizer.skip_synchronize():
                    scaler.step(optimizer)
            else:
                scaler.step(optimizer)
            scaler.update()
    assert scalers[0].get_scale() == scalers[1].get_scale()
    twins.check()


def case_infinity_on_one_rank_skips_the_step_on_all(policy: str) -> None:
    twins, data, scaler = Twins(policy), Data(), _scaler()
    twins.train(data, 2)
    model, optimizer = twins.model, twins.optimizer
    for step, broken_rank in enumerate((None, 1, 0, None, None)):
        inputs, targets = data.next()
        if broken_rank == stock.rank():
            inputs = inputs * float("inf")
        optimizer.flush()
        before = [p.detach().clone() for p in model.parameters()]
        momentum = [optimizer.state[p]["momentum_buffer"].clone() for p in model.parameters()]
        scale = scaler.get_scale()
        optimizer.zero_grad()
        scaler.scale(loss_of(model, (inputs, targets))).backward()
        scaler.unscale_(optimizer)
        states = scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        found = max(float(flag) for flag in states.values())
        scaler.step(optimizer)
        scaler.update()
        optimizer.flush()
        broken = broken_rank is not None
        assert gathered([found]) == [[float(broken)], [float(broken)]], f"step {step}"
        after = list(model.parameters())
        if broken:
            assert_equal(after, before, f"step {step} was to be skipped")
            kept = [optimizer.state[p]["momentum_buffer"] for p in after]
            assert_equal(kept, momentum, f"momentum in skipped step {step}")
            assert scaler.get_scale() == scale / 2
        else:
            assert not any(torch.equal(a, b) for a, b in zip(after, before, strict=True))
            assert scaler.get_scale() >= scale
        assert len({tuple(row) for row in gathered([scaler.get_scale()])}) == 1
        assert equal_on_all_ranks(after), f"step {step}"


def case_infinity_in_a_short_last_window(policy: str) -> None:
    """The last batch of an epoch alone, though two make a step: all ranks look at its average."""
    twins, data, scaler = Twins(policy, backward_passes_per_step=2), Data(), _scaler()
    model, optimizer = twins.model, twins.optimizer
    for epoch in range(4):
        for number in range(5):
            inputs, targets = data.next()
            if (epoch, number, stock.rank()) == (2, 4, 1):
                inputs = inputs * float("inf")
            scaler.scale(loss_of(model, (inputs, targets))).backward()
            if number % 2 == 0 and number < 4:
                continue
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        scales = gathered([scaler.get_scale()])
        assert scales[0] == scales[1], f"epoch {epoch}: {scales}"
    optimizer.flush()
    assert equal_on_all_ranks(model.parameters())
    assert all(bool(p.isfinite().all()) for p in model.parameters())


if __name__ == "__main__":
    main(globals())
