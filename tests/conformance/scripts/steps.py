"""The order of zero_grad(), backward(), synchronize() and step()."""

from __future__ import annotations

from typing import Any

import torch
from harness import main
from material import (
    Branches,
    backward,
    error,
    gradients,
    loss_of,
    network,
    parameters,
    replicas_equal,
    sgd,
    state,
    train,
    trained,
    warned,
    wrapped,
)
from torch import nn

WARM = 10  # steps until each policy has its plan


def _warm(hvd: Any, **arguments: Any) -> tuple[nn.Module, Any]:
    model = network()
    optimizer = wrapped(hvd, model, **arguments)
    train(hvd, model, optimizer, WARM)
    return model, optimizer


def case_step_twice(hvd: Any) -> dict[str, Any]:
    """step() twice after one backward(): both update."""
    model, optimizer = _warm(hvd)
    found = {}
    for step in range(WARM, WARM + 3):
        optimizer.zero_grad()
        backward(hvd, model, step)
        optimizer.step()
        optimizer.step()
        found[str(step)] = trained(hvd, model, optimizer)
    return found


def case_step_without_backward(hvd: Any) -> dict[str, Any]:
    """step() without backward(), after zero_grad() and also as the first thing."""
    model = network()
    optimizer = wrapped(hvd, model)
    found = {}
    for step in range(WARM + 4):
        optimizer.zero_grad()
        if step not in (0, 5, WARM, WARM + 1):
            backward(hvd, model, step)
        optimizer.step()
        found[str(step)] = {"parameters": parameters(model), "gradients": gradients(model)}
    return found


def case_step_without_backward_on_one_rank(hvd: Any) -> dict[str, Any]:
    """One rank has no backward() in a step: it contributes zeros."""
    model, optimizer = _warm(hvd)
    for step in range(WARM, WARM + 4):
        optimizer.zero_grad()
        if step % 2 == hvd.rank():
            backward(hvd, model, step)
        optimizer.step()
    return trained(hvd, model, optimizer)


def case_no_zero_grad(hvd: Any) -> dict[str, Any]:
    """Without zero_grad() gradients add up to the averages of the step before."""
    model = network()
    optimizer = wrapped(hvd, model, sgd(model, lr=0.005))
    for step in range(WARM):
        backward(hvd, model, step)
        optimizer.step()
    return trained(hvd, model, optimizer)


def case_zero_grad_after_backward(hvd: Any) -> dict[str, Any]:
    """zero_grad() between backward() and step()."""
    model, optimizer = _warm(hvd)
    optimizer.zero_grad()
    backward(hvd, model, WARM)
    found = error(optimizer.zero_grad, AssertionError)
    optimizer.synchronize()
    optimizer.zero_grad()
    train(hvd, model, optimizer, 2, first=WARM + 1)
    return {"error": found, **trained(hvd, model, optimizer)}


def case_zero_grad_after_synchronize(hvd: Any) -> dict[str, Any]:
    """zero_grad() between synchronize() and step() throws the averages away."""
    model, optimizer = _warm(hvd)
    optimizer.zero_grad()
    backward(hvd, model, WARM)
    optimizer.synchronize()
    optimizer.zero_grad()
    train(hvd, model, optimizer, 3, first=WARM + 1)
    return trained(hvd, model, optimizer)


def case_zero_grad_arguments(hvd: Any) -> dict[str, Any]:
    """zero_grad() with an argument of torch's."""
    _, optimizer = _warm(hvd)
    return {
        "by_name": error(lambda: optimizer.zero_grad(set_to_none=False), TypeError),
        "by_position": error(lambda: optimizer.zero_grad(True), TypeError),
    }


def case_zero_grad_of_the_users(hvd: Any) -> dict[str, Any]:
    """A user's zero_grad() gets exactly what was given: no argument."""
    seen: list[Any] = []

    class Watching(torch.optim.SGD):
        def zero_grad(self, *args: Any, **kwargs: Any) -> None:
            seen.append((args, kwargs))
            super().zero_grad(*args, **kwargs)

    model = network()
    optimizer = wrapped(hvd, model, Watching(model.parameters(), lr=0.1))
    train(hvd, model, optimizer, 2)
    return {"seen": seen, "gradients": gradients(model)}


def case_zero_grad_of_the_model(hvd: Any) -> dict[str, Any]:
    """model.zero_grad() before backward() in place of the optimizer's."""
    model = network()
    optimizer = wrapped(hvd, model)
    for step in range(WARM):
        model.zero_grad()
        backward(hvd, model, step)
        optimizer.step()
    return trained(hvd, model, optimizer)


def case_gradients_cleared_in_place(hvd: Any) -> dict[str, Any]:
    """Gradients set to zero in place, not to None."""
    model = network()
    optimizer = wrapped(hvd, model)
    for step in range(WARM):
        model.zero_grad(set_to_none=False)
        backward(hvd, model, step)
        optimizer.step()
    return trained(hvd, model, optimizer)


def case_synchronize_then_step(hvd: Any) -> dict[str, Any]:
    """synchronize() and then step() without skip_synchronize() warns."""
    model, optimizer = _warm(hvd)
    optimizer.zero_grad()
    backward(hvd, model, WARM)
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    warnings = warned(optimizer.step)
    optimizer.zero_grad()
    backward(hvd, model, WARM + 1)
    quiet = warned(optimizer.step)
    return {"warnings": warnings, "next_step": quiet, **trained(hvd, model, optimizer)}


def case_skip_synchronize(hvd: Any) -> dict[str, Any]:
    """synchronize(), then step() in skip_synchronize(): no warning, p.grad holds averages."""
    model, optimizer = _warm(hvd)
    averages, warnings = [], []
    for step in range(WARM, WARM + 3):
        optimizer.zero_grad()
        backward(hvd, model, step)
        optimizer.synchronize()
        averages.append(gradients(model))
        with optimizer.skip_synchronize():
            warnings += warned(optimizer.step)
    return {"averages": averages, "warnings": warnings, **trained(hvd, model, optimizer)}


def case_synchronize_twice(hvd: Any) -> dict[str, Any]:
    """A second synchronize() reduces averages once more, which changes nothing."""
    model, optimizer = _warm(hvd)
    for step in range(WARM, WARM + 3):
        optimizer.zero_grad()
        backward(hvd, model, step)
        optimizer.synchronize()
        optimizer.synchronize()
        with optimizer.skip_synchronize():
            optimizer.step()
    return trained(hvd, model, optimizer)


def case_gradient_clipping(hvd: Any) -> dict[str, Any]:
    """The recipe for clipping: the norm is that of the averages."""
    model, optimizer = _warm(hvd)
    norms = []
    for step in range(WARM, WARM + 4):
        optimizer.zero_grad()
        backward(hvd, model, step)
        optimizer.synchronize()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)))
        with optimizer.skip_synchronize():
            optimizer.step()
    return {"norms": norms, **trained(hvd, model, optimizer)}


def case_gradient_changed_after_synchronize(hvd: Any) -> dict[str, Any]:
    """What a script makes of p.grad after synchronize() is what is applied."""
    model, optimizer = _warm(hvd)
    for step in range(WARM, WARM + 3):
        optimizer.zero_grad()
        backward(hvd, model, step)
        optimizer.synchronize()
        for parameter in model.parameters():
            parameter.grad = parameter.grad.sign()
        with optimizer.skip_synchronize():
            optimizer.step()
    return trained(hvd, model, optimizer)


def case_mixed_precision(hvd: Any) -> dict[str, Any]:
    """The recipe for GradScaler, with a step that overflows."""
    model, optimizer = _warm(hvd)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
    scales = []
    for step in range(WARM, WARM + 5):
        optimizer.zero_grad()
        factor = float("inf") if step == WARM + 2 and hvd.rank() == 1 else 1.0
        scaler.scale(loss_of(hvd, model, step) * factor).backward()
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        with optimizer.skip_synchronize():
            scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return {"scales": scales, **trained(hvd, model, optimizer)}


def case_state_after_step(hvd: Any) -> dict[str, Any]:
    """optimizer.state is that of the step that has just ended."""
    model = network()
    optimizer = wrapped(hvd, model, torch.optim.Adam(model.parameters(), lr=0.01))
    found = {}
    for step in range(WARM):
        train(hvd, model, optimizer, 1, first=step)
        found[str(step)] = state(optimizer)
    return found


def case_gradients_kept(hvd: Any) -> dict[str, Any]:
    """A reference to p.grad, kept while training goes on with zero_grad()."""
    model, optimizer = _warm(hvd)
    kept = [parameter.grad for parameter in model.parameters()]
    before = [None if g is None else g.clone() for g in kept]
    train(hvd, model, optimizer, 2, first=WARM)
    return {
        "unchanged": all(
            a is not None and torch.equal(a, b) for a, b in zip(kept, before, strict=True)
        )
    }


def case_closure(hvd: Any) -> dict[str, Any]:
    """step(closure) returns the closure's loss."""
    model = network()
    optimizer = wrapped(hvd, model)
    losses: list[torch.Tensor] = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(hvd, model, 0)
        loss.backward()
        return loss

    found = error(lambda: losses.append(optimizer.step(closure)), AssertionError)
    return {"error": found, "losses": [float(loss) for loss in losses]}


def case_alternating_requires_grad(hvd: Any) -> dict[str, Any]:
    """Two models in one graph, trained in turn, the other one without requires_grad."""
    torch.manual_seed(6)
    first, second = nn.Conv2d(1, 10, 1), nn.Conv2d(10, 1, 1)
    pair = [(m, wrapped(hvd, m, torch.optim.SGD(m.parameters(), lr=1e-3))) for m in (first, second)]
    inputs = torch.rand(1, 1, 9, 9) + hvd.rank()
    moved = []
    for turn in range(12):
        for number, (model, optimizer) in enumerate(pair):
            model.requires_grad_(turn % 2 == number)
            optimizer.zero_grad()
        second(first(inputs)).sum().backward()
        moved.append([model.weight.grad is not None for model, _ in pair])
        pair[turn % 2][1].step()
    models = {"first": parameters(first), "second": parameters(second)}
    return {"gradients": moved, **models, "equal": replicas_equal(hvd, first)}


def case_frozen_during_training(hvd: Any) -> dict[str, Any]:
    """Parameters that are frozen during training: do momentum and decay go on moving them?"""
    model = Branches()
    optimizer = wrapped(hvd, model)
    before = {}
    for step in range(WARM + 4):
        model.left.requires_grad_(step < WARM)
        optimizer.zero_grad()
        backward(hvd, model, step)
        optimizer.step()
        if step == WARM - 1:
            before = trained(hvd, model, optimizer)
    frozen = {name: parameters(model)[name] for name in ("left.weight", "left.bias")}
    return {
        "before": before,
        "moved": any(value != before["parameters"][name] for name, value in frozen.items()),
        "replicas_equal": replicas_equal(hvd, model),
    }


def case_unfrozen_during_training(hvd: Any) -> dict[str, Any]:
    """Parameters that are frozen when the optimizer is made, and unfrozen later: averaged?"""
    model = Branches()
    model.left.requires_grad_(False)
    optimizer = wrapped(hvd, model)
    for step in range(WARM):
        model.left.requires_grad_(step >= 4)
        optimizer.zero_grad()
        backward(hvd, model, step)
        optimizer.step()
    return {"replicas_equal": replicas_equal(hvd, model)}


if __name__ == "__main__":
    main(globals(), "steps")
