"""``hvd.join()``: ranks with fewer batches than others."""

from __future__ import annotations

from typing import Any

import torch
from harness import main
from material import network, parameters, replicas_equal, state, train, wrapped


def _joined(hvd: Any, batches: tuple[int, int], **arguments: Any) -> dict[str, Any]:
    model = network()
    optimizer = wrapped(hvd, model, **arguments)
    train(hvd, model, optimizer, batches[hvd.rank()])
    last = hvd.join()
    # The rank that left early has not made the last updates.
    hvd.broadcast_parameters(model.state_dict(), root_rank=last)
    return {
        "last": last,
        "parameters": parameters(model),
        "replicas_equal": replicas_equal(hvd, model),
    }


def case_first_rank_has_less(hvd: Any) -> dict[str, Any]:
    """Rank 0 ends first; averages still divide by all ranks."""
    return _joined(hvd, (8, 12))


def case_last_rank_has_less(hvd: Any) -> dict[str, Any]:
    """Rank 1 ends first."""
    return _joined(hvd, (12, 8))


def case_equal_numbers(hvd: Any) -> dict[str, Any]:
    """Both have as much: all ranks are told the same last rank, whichever it is."""
    model = network()
    optimizer = wrapped(hvd, model)
    train(hvd, model, optimizer, 9)
    everyone = hvd.allgather_object(hvd.join())
    return {"same": len(set(everyone)) == 1, "parameters": parameters(model)}


def case_no_data_at_all(hvd: Any) -> dict[str, Any]:
    """A rank without any batch."""
    model = network()
    optimizer = wrapped(hvd, model, torch.optim.SGD(model.parameters(), lr=0.1))
    train(hvd, model, optimizer, 0 if hvd.rank() == 0 else 6)
    return {"last": hvd.join(), "parameters": parameters(model)}


def case_several_epochs(hvd: Any) -> dict[str, Any]:
    """join(), broadcasts and another epoch, three times."""
    model = network()
    optimizer = wrapped(hvd, model)
    lasts = []
    for epoch in range(3):
        train(hvd, model, optimizer, 6 + (epoch + hvd.rank()) % 2, first=10 * epoch)
        lasts.append(hvd.join())
        hvd.broadcast_parameters(model.state_dict(), root_rank=lasts[-1])
        hvd.broadcast_optimizer_state(optimizer, root_rank=lasts[-1])
    return {"lasts": lasts, "parameters": parameters(model), "state": state(optimizer)}


if __name__ == "__main__":
    main(globals(), "joining")
