"""``op=hvd.Adasum``: Horovod's own delta optimizer does all of it."""

from __future__ import annotations

from typing import Any

from harness import main
from material import error, network, parameters, sgd, train, wrapped


def case_construction(hvd: Any) -> dict[str, Any]:
    """It can be made; synchronize() does nothing, skip_synchronize() is an AssertionError."""
    optimizer = wrapped(hvd, network(), op=hvd.Adasum)

    def skip() -> None:
        with optimizer.skip_synchronize():
            pass

    return {
        "synchronize": error(optimizer.synchronize),
        "skip": error(skip, AssertionError),
        "passes": optimizer.backward_passes_per_step,
    }


def case_training(hvd: Any) -> dict[str, Any]:
    """It trains where Horovod can reduce that way (MPI), and fails alike where it cannot."""
    model = network()
    optimizer = wrapped(hvd, model, sgd(model, momentum=0.0), op=hvd.Adasum)
    found = error(lambda: train(hvd, model, optimizer, 2), RuntimeError)
    return {"error": found, "parameters": parameters(model) if found == "none" else None}


if __name__ == "__main__":
    main(globals(), "adasum")
