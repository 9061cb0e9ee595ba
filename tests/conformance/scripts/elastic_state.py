"""``hvd.elastic`` without failures: states, handlers and samplers; what run() does not catch."""

from __future__ import annotations

from typing import Any

import torch
from harness import main
from material import (
    backward,
    network,
    options,
    parameters,
    sgd,
    state,
    train,
    trained,
    wrapped,
)
from torch.utils.data import DataLoader, TensorDataset

SAMPLES_EACH, ROWS = 8, 2


def _different(hvd: Any) -> Any:
    return network(seed=30 + hvd.rank())


def _seen(kept: Any, model: Any) -> dict[str, Any]:
    return {"parameters": parameters(model), "batch": kept.batch, "epoch": kept.epoch}


def case_sync_restore_commit(hvd: Any) -> dict[str, Any]:
    """sync() brings rank 0's values, restore() the last commit, commit() makes one."""
    model, other = _different(hvd), network()
    kept = hvd.elastic.TorchState(model, sgd(model), batch=20 + hvd.rank(), epoch=10 + hvd.rank())
    kept.sync()
    found = {"synced": _seen(kept, model)}
    for label, commits in (("restored", False), ("committed", True)):
        model.load_state_dict(other.state_dict())
        kept.batch, kept.epoch = 21, 11
        if commits:
            kept.commit()
        kept.restore()
        found[label] = _seen(kept, model)
    return found


def case_wrapped_optimizer(hvd: Any) -> dict[str, Any]:
    """The same with a distributed optimizer that trains in between."""
    model = _different(hvd)
    optimizer = wrapped(hvd, model)
    kept = hvd.elastic.TorchState(model=model, optimizer=optimizer, batch=0, epoch=0)
    kept.sync()
    train(hvd, model, optimizer, 8)
    kept.commit()
    train(hvd, model, optimizer, 3, first=8)
    found = {"before": trained(hvd, model, optimizer)}
    kept.restore()
    found["restored"] = {"parameters": parameters(model), "state": state(optimizer)}
    train(hvd, model, optimizer, 3, first=8)
    return {**found, "again": trained(hvd, model, optimizer)}


def case_restore_in_the_middle_of_a_step(hvd: Any) -> dict[str, Any]:
    """restore() after synchronize(): what was averaged is thrown away."""
    model = network()
    optimizer = wrapped(hvd, model)
    kept = hvd.elastic.TorchState(model=model, optimizer=optimizer)
    train(hvd, model, optimizer, 8)
    kept.commit()
    optimizer.zero_grad()
    backward(hvd, model, 8)
    optimizer.synchronize()
    kept.restore()
    train(hvd, model, optimizer, 3, first=9)
    return trained(hvd, model, optimizer)


def case_sync_of_a_fresh_optimizer(hvd: Any) -> dict[str, Any]:
    """sync() where no rank has optimizer state; options become those of rank 0."""
    model = _different(hvd)
    inner = sgd(model, lr=0.1 * (1 + hvd.rank()))
    optimizer = wrapped(hvd, model, inner)
    kept = hvd.elastic.TorchState(model=model, optimizer=optimizer)
    kept.sync()
    found = {"options": options(optimizer), "state": state(optimizer)}
    train(hvd, model, optimizer, 4)
    return {**found, "trained": trained(hvd, model, optimizer)}


def case_several_models(hvd: Any) -> dict[str, Any]:
    """Models and optimizers under names of the script's own."""
    first, second = _different(hvd), _different(hvd)
    one, two = wrapped(hvd, first), sgd(second)
    kept = hvd.elastic.TorchState(first=first, second=second, one=one, two=two, note="a")
    kept.note = f"rank {hvd.rank()}"
    kept.save()
    kept.sync()
    return {
        "first": parameters(first),
        "second": parameters(second),
        "note": kept.note,
        "attributes": kept.first is first and kept.one is one,
        "empty": [kept.model, kept.optimizer],
    }


def case_replaced_model(hvd: Any) -> dict[str, Any]:
    """A model and an optimizer assigned to the state are saved at once."""
    model, other = network(), network(seed=4)
    kept = hvd.elastic.TorchState(model=model, optimizer=wrapped(hvd, model))
    optimizer = wrapped(hvd, other)
    kept.model, kept.optimizer = other, optimizer
    train(hvd, other, optimizer, 3)
    kept.restore()
    return {"parameters": parameters(other), "state": [e is None for e in state(optimizer)]}


def case_sampler(hvd: Any) -> dict[str, Any]:
    """ElasticSampler: what is processed counts, is kept, restored, synced and divided anew."""
    count = SAMPLES_EACH * hvd.size()
    data = TensorDataset(torch.arange(count))
    sampler = hvd.elastic.ElasticSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=ROWS, sampler=sampler)
    kept = hvd.elastic.TorchState(sampler=sampler)
    kept.sync()
    seen: list[Any] = [(sampler.epoch, sampler.processed_num, len(sampler))]
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for number, (rows,) in enumerate(loader):
            sampler.record_batch(number, ROWS)
            seen.append((rows.tolist(), sampler.processed_num))
    seen.append(sum(1 for _ in loader))
    sampler.set_epoch(2)
    sampler.record_batch(0, ROWS)
    kept.commit()
    sampler.record_batch(1, ROWS)
    seen.append(sampler.processed_num)
    kept.restore()
    seen.append(sampler.processed_num)
    kept.sync()
    seen += [len(sampler), [rows.tolist() for (rows,) in loader]]
    sampler.set_epoch(3)
    return {"seen": seen, "length": len(sampler), "kind": type(sampler).__name__}


def case_names(module: Any) -> dict[str, Any]:
    """Everything that horovod.torch.elastic offers."""
    import horovod.torch as stock

    names = [name for name in dir(stock.elastic) if not name.startswith("_")]
    return {"missing": [name for name in names if not hasattr(module.elastic, name)]}


def case_state_kinds(module: Any) -> dict[str, Any]:
    """TorchState is one of Horovod's states; handlers are those of its registry."""
    from horovod.torch.elastic import state as stock_state

    model = network()
    kept = module.elastic.TorchState(model=model, optimizer=wrapped(module, model), count=1)
    return {
        "kind": isinstance(kept, stock_state.TorchState),
        "name": type(kept).__name__,
        "handlers": {key: type(one).__name__ for key, one in kept._handlers.items()},
    }


def _interrupted(hvd: Any, errors: list[Exception]) -> dict[str, Any]:
    """A training in which each of these errors is raised once, on all ranks alike."""
    model = network()
    optimizer = wrapped(hvd, model)
    kept = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0)
    left, calls, resets = list(errors), [], []
    kept.register_reset_callbacks([lambda: resets.append(kept.step)])

    @hvd.elastic.run
    def run(kept: Any) -> str:
        calls.append(kept.step)
        while kept.step < 14:
            if left and kept.step == 8:
                raise left.pop(0)
            train(hvd, model, optimizer, 1, first=kept.step)
            kept.step += 1
            if kept.step % 3 == 0:
                kept.commit()
        return "done"

    returned = run(kept)
    return {
        "returned": returned,
        "calls": calls,
        "resets": resets,
        "step": kept.step,
        **trained(hvd, model, optimizer),
    }


def case_other_errors(hvd: Any) -> dict[str, Any]:
    """Any other error ends run()."""
    try:
        _interrupted(hvd, [KeyError("mine")])
    except KeyError as error:
        return {"error": str(error)}
    return {"error": "none"}


if __name__ == "__main__":
    main(globals(), "elastic_state")
