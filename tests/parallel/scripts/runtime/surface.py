"""What a user's script, a scheduler or a checkpoint sees of the optimizer: torch's own surface."""

from __future__ import annotations

import copy
import inspect
import io
import json
import os
import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any

import horovod.torch as stock
import pytest
import torch
from torch import nn

import deft_horovod.torch as hvd
from tests.parallel.scripts.training import (
    Data,
    assert_equal,
    assert_equal_models,
    equal_on_all_ranks,
    loss_of,
    mlp,
)
from tests.parallel.scripts.twins import SIZES, Twins, adam, average_gradients, main, ours_of, sgd

# Not zero_grad(), which hands on exactly what it is given.
_METHODS = ("step", "state_dict", "load_state_dict", "add_param_group")


def _shape(function: Any) -> list[tuple[str, Any, Any]]:
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


def _step(model: nn.Module, optimizer: Any, batch: Any, average: bool = False) -> None:
    optimizer.zero_grad()
    loss_of(model, batch).backward()
    if average:
        average_gradients(model.parameters())
    optimizer.step()


def case_is_a_torch_optimizer(policy: str) -> None:
    model = mlp()
    optimizer = ours_of(model, policy)
    assert isinstance(optimizer, torch.optim.Optimizer)
    assert isinstance(optimizer, hvd.OptimizerType)
    assert optimizer.param_groups is optimizer.inner.param_groups
    assert optimizer.state is optimizer.inner.state
    assert optimizer.defaults is optimizer.inner.defaults
    assert "SGD" in repr(optimizer)
    assert "momentum" in repr(optimizer)


def case_signatures() -> None:
    optimizer = ours_of(mlp(), "bucket")
    for name in _METHODS:
        ours, theirs = getattr(optimizer, name), getattr(optimizer.inner, name)
        if name == "step":  # the inner one may have arguments of its own
            theirs = getattr(torch.optim.SGD(mlp().parameters()), name)
        assert _shape(ours) == _shape(theirs), f"{name}: {_shape(ours)} != {_shape(theirs)}"


def case_has_everything_of_horovod() -> None:
    missing = [n for n in dir(stock) if not n.startswith("_") and not hasattr(hvd, n)]
    assert not missing, missing
    ours = set(dir(hvd))
    assert {n for n in dir(stock) if not n.startswith("_")} <= ours
    for name in ("SyncBatchNorm", "Compression", "allreduce", "broadcast_parameters", "rank"):
        assert getattr(hvd, name) is getattr(stock, name)
    theirs = list(inspect.signature(stock.DistributedOptimizer).parameters.values())
    mine = list(inspect.signature(hvd.DistributedOptimizer).parameters.values())
    assert [(p.name, p.default) for p in mine[: len(theirs)]] == [
        (p.name, p.default) for p in theirs
    ]
    added = mine[len(theirs) :]
    assert [p.name for p in added] == ["policy", "config"]
    assert {p.kind for p in added} == {inspect.Parameter.KEYWORD_ONLY}
    assert hvd.DistributedOptimizer.__module__.startswith("deft_horovod")


def case_attributes_of_the_inner_optimizer(policy: str) -> None:
    class Counting(torch.optim.SGD):
        answer = 42

        def ask(self) -> int:
            return self.answer + 1

    model = mlp()
    optimizer: Any = ours_of(model, policy, lambda p: Counting(p, lr=0.1))
    assert (optimizer.answer, optimizer.ask()) == (42, 43)
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = optimizer.nothing_of_this_name


def case_pickle(policy: str) -> None:
    twins, data = Twins(policy, optimizer=adam), Data()
    twins.train(data, 5)
    model, optimizer = pickle.loads(pickle.dumps((twins.model, twins.optimizer)))  # noqa: S301
    assert type(optimizer) is hvd.OptimizerType
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))
    for _ in range(5):
        batch = data.next()
        for some_model, some in ((model, optimizer), *twins):
            _step(some_model, some, batch)
    optimizer.flush()
    twins.check()
    assert_equal_models(model, twins.model, "the unpickled model")


def case_deepcopy(policy: str) -> None:
    twins, data = Twins(policy, optimizer=adam), Data()
    twins.train(data, 5)
    model, optimizer = copy.deepcopy((twins.model, twins.optimizer))
    for _ in range(5):
        batch = data.next()
        for some_model, some in ((model, optimizer), *twins):
            _step(some_model, some, batch)
    optimizer.flush()
    twins.check()
    assert_equal_models(model, twins.model, "the copy")


def case_torch_save_of_the_whole_optimizer(policy: str) -> None:
    model, data = mlp(), Data()
    optimizer = ours_of(model, policy, adam)
    for _ in range(5):
        _step(model, optimizer, data.next())
    file = io.BytesIO()
    torch.save(optimizer, file)
    loaded = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    optimizer.flush()
    mine = [p for group in loaded.param_groups for p in group["params"]]
    assert_equal(mine, model.parameters(), "saved parameters")
    assert len(loaded.state) == len(mine)


def case_add_param_group(policy: str) -> None:
    """Against averages by hand: Horovod's own does not see groups that are added."""
    model, reference = mlp(), mlp()
    mine, theirs = list(model.parameters()), list(reference.parameters())
    inner = torch.optim.SGD(mine[:2], lr=0.05, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(
        inner, list(model.named_parameters())[:2], policy=policy, config=SIZES
    )
    expected = torch.optim.SGD(theirs[:2], lr=0.05, momentum=0.9)
    data = Data()
    for step in range(14):
        if step == 4:
            named = list(model.named_parameters())[2:4]
            optimizer.add_param_group({"params": named, "lr": 0.02})
            expected.add_param_group({"params": theirs[2:4], "lr": 0.02})
        if step == 9:
            optimizer.add_param_group({"params": mine[4:]})
            expected.add_param_group({"params": theirs[4:]})
        batch = data.next()
        model.zero_grad()
        _step(model, optimizer, batch)
        reference.zero_grad()
        _step(reference, expected, batch, average=True)
        optimizer.flush()
        assert_equal_models(model, reference, f"step {step}")
        assert equal_on_all_ranks(model.parameters())
    assert [group["lr"] for group in optimizer.param_groups] == [0.05, 0.02, 0.05]


def case_state_dict_is_that_of_the_inner_optimizer(policy: str) -> None:
    """A checkpoint can be read without us, and one from before us can be loaded."""
    model, data = mlp(), Data()
    optimizer = ours_of(model, policy, adam)
    for _ in range(5):
        _step(model, optimizer, data.next())
    state = optimizer.state_dict()
    plain = adam(mlp().parameters())
    plain.load_state_dict(state)
    assert sorted(plain.state_dict()) == sorted(state)
    again = ours_of(mlp(), policy, adam)
    again.load_state_dict(plain.state_dict())
    for key, values in again.state_dict()["state"].items():
        assert_equal(values.values(), state["state"][key].values(), f"state {key}")


def case_learning_rate_set_by_hand(policy: str) -> None:
    """The rate that holds at the step is used, also by updates that are held back."""
    twins, data = Twins(policy), Data()
    for step in range(10):
        batch = data.next()
        for model, optimizer in twins:
            for group in optimizer.param_groups:
                group["lr"] = 0.1 / (1 + step)
            _step(model, optimizer, batch)
            for group in optimizer.param_groups:
                group["lr"] = 1e6  # nothing may be updated with this
    for _, optimizer in twins:
        optimizer.param_groups[0]["lr"] = 0.0
    twins.check()


def case_optimizers_come_and_go(policy: str) -> None:
    """Names in Horovod's queue do not clash, and what is gone does not act."""
    for round_ in range(4):
        twins, data = Twins(policy, optimizer=sgd if round_ % 2 else adam), Data()
        twins.train(data, 4)
        twins.check(f"round {round_}")
        del twins


def case_wrapped_anew_over_the_same_parameters(policy: str) -> None:
    """The old wrapper's hooks must not disturb the new one's."""
    model, reference, data = mlp(), mlp(), Data()
    expected = sgd(reference.parameters())
    for _ in range(2):
        optimizer = ours_of(model, policy)
        expected = sgd(reference.parameters())
        for step in range(5):
            batch = data.next()
            _step(model, optimizer, batch)
            _step(reference, expected, batch, average=True)
            optimizer.flush()
            assert_equal_models(model, reference, f"step {step}")


def case_by_default_groups_are_kept_together() -> None:
    optimizer = ours_of(mlp(), "auto", groups=2)
    assert optimizer.stats()["policy"] == "bucket"


def case_by_default_lbfgs_works() -> None:
    model = mlp()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.LBFGS(model.parameters()), model.named_parameters()
    )
    assert optimizer.stats()["policy"] == "bucket"


def case_metrics_are_written_by_rank_0_while_it_trains() -> None:
    """Each optimizer into its own file; a copy of one writes nothing."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        config = {"metrics": "metrics.jsonl", "metrics_steps": 4}
        os.chdir(folder)
        models = [mlp(), mlp()]
        optimizers = [ours_of(model, "bucket", config=config) for model in models]
        copied = copy.deepcopy(optimizers[0])
        os.chdir(before)
        data = Data()
        for _ in range(9):
            for model, optimizer in zip(models, optimizers, strict=True):
                _step(model, optimizer, data.next())
        copied.zero_grad()
        copied.step()
        found = {
            path.name: [json.loads(line) for line in path.read_text().splitlines()]
            for path in Path(folder).iterdir()
        }
        if stock.rank() != 0:
            assert found == {}
            return
        assert sorted(found) == ["metrics-1.jsonl", "metrics.jsonl"]
        for lines in found.values():
            assert [line["steps"] for line in lines] == [4, 8]
            assert lines[-1]["policy"] == "bucket"
            assert lines[-1]["links"]["horovod"]["bytes"] > lines[0]["links"]["horovod"]["bytes"]
        del copied


def case_num_groups_is_deprecated() -> None:
    twins = Twins("bucket", groups=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        old = ours_of(mlp(), "bucket", num_groups=2)
    assert any("num_groups" in str(w.message) for w in caught)
    data = Data()
    model = mlp()
    old = ours_of(model, "bucket", groups=2)
    for _ in range(3):
        batch = data.next()
        for some_model, some in ((model, old), *twins):
            _step(some_model, some, batch)
    twins.check()
    assert_equal_models(model, twins.model)


if __name__ == "__main__":
    main(globals())
