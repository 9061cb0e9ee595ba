"""Elastic training in a job that cannot be elastic."""

from __future__ import annotations

from unittest import SkipTest

import horovod.torch as stock
import torch
from horovod.common.exceptions import HorovodInternalError

import deft_horovod.torch as hvd
from deft_horovod.errors import NotSupportedError
from tests.parallel.scripts.reporting import cases_in, run_cases


def case_under_mpi_a_reset_says_what_to_do() -> None:
    if not stock.mpi_enabled():
        raise SkipTest("this job is not run by MPI")
    state = hvd.elastic.TorchState(model=torch.nn.Linear(1, 1), done=0)

    @hvd.elastic.run
    def train(state: hvd.elastic.TorchState) -> int:
        state.done += 1
        state.commit()
        if state.done > 1:
            raise HorovodInternalError("a peer is gone")
        return state.done

    assert train(state) == 1  # without an error it is a loop as any other
    try:
        train(state)
    except NotSupportedError as error:
        assert "horovodrun --gloo" in str(error)
    else:
        raise AssertionError("Horovod began anew under MPI")


if __name__ == "__main__":
    hvd.init()
    run_cases(cases_in(globals()))
