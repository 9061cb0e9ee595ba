"""What loops do with parameters between step() and the next forward, without flush()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from tests.parallel.scripts.training import Data, assert_equal, assert_equal_models, loss_of, mlp
from tests.parallel.scripts.twins import Twins, main

STEPS = 8
BOUND = 1 / 16


def _train(twins: Twins, after: Callable[[nn.Module, nn.Module], None], pairs: Any = None) -> None:
    """Steps with both; after each, `after` gets the model as it is trained and its original."""
    data = Data()
    for _ in range(STEPS):
        batch = data.next()
        for original, optimizer in twins:
            trained = pairs[original] if pairs else original
            optimizer.zero_grad()
            loss_of(trained, batch).backward()
            optimizer.step()
            after(trained, original)


def case_average_of_weights(policy: str) -> None:
    twins = Twins(policy)
    averages = {model: AveragedModel(model) for model, _ in twins}
    _train(twins, lambda _, model: averages[model].update_parameters(model))
    assert_equal_models(averages[twins.model], averages[twins.reference], "averages")
    twins.check()


def case_clipped_weights(policy: str) -> None:
    def clip(_: nn.Module, model: nn.Module) -> None:
        for parameter in model.parameters():
            parameter.data.clamp_(-BOUND, BOUND)

    twins = Twins(policy)
    _train(twins, clip)
    assert max(float(p.detach().abs().max()) for p in twins.model.parameters()) <= BOUND
    twins.check()


def case_norms_of_weights(policy: str) -> None:
    seen: dict[nn.Module, list[torch.Tensor]] = {}

    def look(_: nn.Module, model: nn.Module) -> None:
        with torch.no_grad():
            norm = nn.utils.get_total_norm(model.parameters())  # many tensors in one operation
        seen.setdefault(model, []).append(norm)

    twins = Twins(policy)
    _train(twins, look)
    assert_equal(seen[twins.model], seen[twins.reference], "norms")
    twins.check()


def _check_saving(twins: Twins, parts: Callable[[nn.Module], Any], pairs: Any = None) -> None:
    saved: dict[nn.Module, list[torch.Tensor]] = {}

    def save(_: nn.Module, model: nn.Module) -> None:
        for part in parts(model):
            saved.setdefault(model, []).extend(t.clone() for t in part.state_dict().values())

    _train(twins, save, pairs)
    assert_equal(saved[twins.model], saved[twins.reference], "what was saved")
    twins.check()


def case_a_part_is_saved(policy: str) -> None:
    _check_saving(Twins(policy), lambda model: reversed([*model.children()]))


def case_the_original_of_a_compiled_model_is_saved(policy: str) -> None:
    twins = Twins(policy)
    compiled = {model: torch.compile(model, backend="eager") for model, _ in twins}
    _check_saving(twins, lambda model: [model], compiled)


def case_functional_use(policy: str) -> None:
    outputs: dict[nn.Module, list[torch.Tensor]] = {}
    inputs, _ = Data(rank=0).next()
    bare = mlp()

    def call(_: nn.Module, model: nn.Module) -> None:
        with torch.no_grad():
            values = dict(model.named_parameters())
            found = torch.func.functional_call(bare, values, (inputs,))
        outputs.setdefault(model, []).append(found)

    twins = Twins(policy)
    _train(twins, call)
    assert_equal(outputs[twins.model], outputs[twins.reference], "outputs")
    twins.check()


if __name__ == "__main__":
    main(globals())
