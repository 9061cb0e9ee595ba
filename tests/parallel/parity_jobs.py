"""The parity jobs, each run once for all test files that look at it."""

from __future__ import annotations

import functools
from typing import Any, Final

from tests.parallel.cases import Job, run_program
from tests.parallel.scripts.parity_cases import Case

RANKS: Final = (2, 3, 4)
LIMIT_S: Final = 400


# Relative to a tensor's largest element (at least 1): some ten units in the last place of what is
# rounded. With an fp16 wire that is the gradient, of which these steps take a small part each; with
# fp16 parameters it is the parameter itself.
_TOLERANCE: Final = {"mlp": 1e-6, "cnn": 1e-6, "tied": 1e-6, "double": 2e-15, "mixed": 5e-3}
_FP16_WIRE_TOLERANCE: Final = 1e-3
_BITWISE_SETS: Final = ("first", "pair", "parity")  # of one or two ranks


@functools.cache
def parity_job(np: int, device: str = "cpu") -> Job:
    """Twins trained with ours and with Horovod's optimizer, on so many ranks."""
    env = {"DEFT_TEST_DEVICE": device}
    return run_program("runtime/parity.py", np, timeout_s=LIMIT_S - 20, env=env)


def values(np: int, case: str) -> list[dict[str, Any]]:
    """What each rank saw in this case."""
    return parity_job(np).values(case)


def check_equal(
    np: int, case: Case, seen_by_rank: list[dict[str, Any]], nccl: bool = False
) -> None:
    """Ours trained as Horovod's did: bit for bit where two numbers are added.

    More ranks: the ring adds a buffer's chunks in an order that depends on where in the buffer they
    lie, so ours and Horovod's sums (and Horovod's own from run to run) differ by rounding. NCCL
    halves before it adds, and rounds the half that it sends: in fp16 a small number may lose its
    last bit by that, so there the place decides on two ranks, too.
    """
    fp16_wire = case.compression == "fp16"
    for rank, seen in enumerate(seen_by_rank):
        assert seen["trained"], f"rank {rank}: some parameter never changed"
        if (np == 2 or case.ranks in _BITWISE_SETS) and not (nccl and fp16_wire):
            assert seen["losses_equal"], f"rank {rank}: losses differ by {seen['loss_gap']}"
            assert seen["equal"], f"rank {rank}: parameters differ by {seen['apart']}"
            continue
        tolerance = _FP16_WIRE_TOLERANCE if fp16_wire else _TOLERANCE[case.model]
        assert seen["apart"] <= tolerance
        assert seen["loss_gap"] <= 10 * tolerance
