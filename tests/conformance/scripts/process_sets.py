"""Optimizers and objects of a part of the ranks; three ranks, so that a set of two is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness import main
from material import error, gradients, network, parameters, replicas_equal, sgd, train, wrapped

PAIR = (0, 2)


@contextmanager
def _process_set(hvd: Any, ranks: tuple[int, ...]) -> Iterator[Any]:
    made = hvd.add_process_set(list(ranks))
    yield made
    hvd.barrier()
    hvd.remove_process_set(made)


def _equal_in(hvd: Any, model: Any, ranks: tuple[int, ...]) -> bool:
    everyone = hvd.allgather_object(parameters(model))
    return all(everyone[rank] == everyone[ranks[0]] for rank in ranks)


def case_optimizer(hvd: Any) -> dict[str, Any]:
    """Ranks of the set average among themselves; the others train on their own."""
    with _process_set(hvd, PAIR) as pair:
        model = network()
        optimizer = wrapped(hvd, model, process_set=pair)
        train(hvd, model, optimizer, 10)
        return {
            "parameters": parameters(model),
            "gradients": gradients(model),
            "equal_in_the_set": _equal_in(hvd, model, PAIR),
            "equal_on_all": replicas_equal(hvd, model),
        }


def case_sum(hvd: Any) -> dict[str, Any]:
    """op=Sum on a process set."""
    with _process_set(hvd, PAIR) as pair:
        model = network()
        optimizer = wrapped(hvd, model, sgd(model, lr=0.02), process_set=pair, op=hvd.Sum)
        train(hvd, model, optimizer, 10)
        return {"parameters": parameters(model)}


def case_compression(hvd: Any) -> dict[str, Any]:
    """Compression.fp16 and gradient_predivide_factor on a process set."""
    with _process_set(hvd, PAIR) as pair:
        model = network()
        optimizer = wrapped(
            hvd,
            model,
            process_set=pair,
            compression=hvd.Compression.fp16,
            gradient_predivide_factor=2.0,
        )
        train(hvd, model, optimizer, 10)
        return {"parameters": parameters(model)}


def case_synchronize(hvd: Any) -> dict[str, Any]:
    """synchronize() and skip_synchronize(), also on a rank outside."""
    with _process_set(hvd, PAIR) as pair:
        model = network()
        optimizer = wrapped(hvd, model, process_set=pair)
        train(hvd, model, optimizer, 8)
        optimizer.zero_grad()
        model(model[0].weight.new_ones(2, 7)).pow(2).mean().backward()
        optimizer.synchronize()
        averages = gradients(model)
        with optimizer.skip_synchronize():
            optimizer.step()
        return {"averages": averages, "parameters": parameters(model)}


def case_zero_grad_outside(hvd: Any) -> dict[str, Any]:
    """zero_grad() after backward() on ranks outside of the set is allowed."""
    with _process_set(hvd, PAIR) as pair:
        model = network()
        optimizer = wrapped(hvd, model, process_set=pair)
        train(hvd, model, optimizer, 4)
        found = "none"
        if hvd.rank() not in PAIR:
            model(model[0].weight.new_ones(2, 7)).pow(2).mean().backward()
            found = error(optimizer.zero_grad, AssertionError)
        train(hvd, model, optimizer, 2, first=4)
        return {"error": found, "parameters": parameters(model)}


def case_one_rank(hvd: Any) -> dict[str, Any]:
    """A set of one rank trains on its own."""
    with _process_set(hvd, (1,)) as one:
        model = network()
        optimizer = wrapped(hvd, model, process_set=one)
        train(hvd, model, optimizer, 10)
        return {"parameters": parameters(model)}


def case_two_sets(hvd: Any) -> dict[str, Any]:
    """Two optimizers of two sets that share a rank."""
    with _process_set(hvd, PAIR) as left, _process_set(hvd, (1, 2)) as right:
        found = {}
        for label, chosen in (("left", left), ("right", right)):
            model = network()
            optimizer = wrapped(hvd, model, process_set=chosen)
            train(hvd, model, optimizer, 8)
            found[label] = parameters(model)
        return found


def case_all_ranks(hvd: Any) -> dict[str, Any]:
    """All three ranks: replicas are equal, sums may be added in another order than Horovod's."""
    model = network()
    optimizer = wrapped(hvd, model)
    train(hvd, model, optimizer, 10)
    return {"replicas_equal": replicas_equal(hvd, model)}


def case_broadcast_object(hvd: Any) -> dict[str, Any]:
    """broadcast_object within a process set."""
    with _process_set(hvd, PAIR) as pair, _process_set(hvd, (1,)) as rest:
        chosen = pair if hvd.rank() in PAIR else rest
        root = PAIR[1] if hvd.rank() in PAIR else 1
        mine = {"hello": 123, 0: [1, 2]} if hvd.rank() == root else {}
        return {"object": hvd.broadcast_object(mine, root_rank=root, process_set=chosen)}


def case_attributes(hvd: Any) -> dict[str, Any]:
    """What a process set says of itself."""
    with _process_set(hvd, PAIR) as pair:
        rank = pair.rank() if pair.included() else None
        return {"included": pair.included(), "rank": rank, "size": pair.size()}


if __name__ == "__main__":
    main(globals(), "process_sets")
