"""Elastic training: ``horovod.torch.elastic`` for our optimizer.

After a reset of Horovod nothing that was agreed or in flight holds any more; every optimizer agrees
anew at its next step, with the ranks that are there then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import horovod.torch as stock_torch
from horovod.common.elastic import run_fn
from horovod.torch import elastic as stock
from horovod.torch.elastic import ElasticSampler
from horovod.torch.elastic.state import TorchState as StockTorchState

from deft_horovod.config import Config
from deft_horovod.errors import NotSupportedError, explain
from deft_horovod.runtime.wrapper import DistributedOptimizer
from deft_horovod.torch.functions import broadcast_optimizer_state, init, shutdown

__all__ = ["ElasticSampler", "TorchState", "run"]


class TorchState(StockTorchState):  # type: ignore[misc]
    """The state of models, optimizers and samplers, as Horovod's, for our optimizer too."""

    def sync(self) -> None:
        """Makes this rank's state that of rank 0."""
        for handler in self._handlers.values():
            if isinstance(handler.value, DistributedOptimizer):
                broadcast_optimizer_state(handler.value, root_rank=0)
            else:
                handler.sync()
        super(StockTorchState, self).sync()


def __getattr__(name: str) -> Any:
    return getattr(stock, name)


def _reset() -> None:
    if stock_torch.mpi_enabled():
        raise NotSupportedError(
            explain(
                "elastic training cannot go on under MPI",
                rank=Config.launched_rank(),
                observed="an error of Horovod, or other hosts, in a job that MPI has started",
                expected="a job of horovodrun with Gloo: MPI cannot begin anew within a process",
                action="start it with horovodrun --gloo --min-np N --host-discovery-script FILE",
            )
        )
    shutdown()
    init()


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a training function elastically; see :func:`horovod.torch.elastic.run`."""
    return run_fn(func, _reset)  # type: ignore[no-any-return]
