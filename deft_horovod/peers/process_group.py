"""What a rank needs of ``horovod.torch``, over torch.distributed: same names, same meanings.

Messages of a process group meet by their order alone. What is asked here is asked by the training
thread, in the same order on all ranks, and travels over Gloo from host memory. Gradients travel on
a link of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Final

import torch
import torch.distributed

from deft_horovod.config import Config
from deft_horovod.errors import NotSupportedError, explain

# Torch annotates only part of what is there.
_DISTRIBUTED: Final[Any] = torch.distributed


class Operation(Enum):
    """How the values of all ranks become one."""

    AVERAGE = "Average"
    SUM = "Sum"
    ADASUM = "Adasum"


Average, Sum, Adasum = Operation.AVERAGE, Operation.SUM, Operation.ADASUM
# Who waits has a deadline of its own, and says for what.
_FOREVER: Final = timedelta(hours=24)
HorovodInternalError = _DISTRIBUTED.DistBackendError


class Uncompressed:
    """Gradients travel as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, None]:
        """As it travels, and what it takes to come back."""
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, _: object) -> torch.Tensor:
        """What has arrived."""
        return tensor


class InHalf:
    """Floating point travels in 16 bits."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.dtype]:
        """As it travels, and what it takes to come back."""
        return (tensor.half() if tensor.is_floating_point() else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """What has arrived, as wide as it was."""
        return tensor.to(dtype)


class Compression:
    """By Horovod's names."""

    none = Uncompressed
    fp16 = InHalf


class WholeJob:
    """All ranks, as Horovod describes a process set."""

    process_set_id = 0

    @property
    def ranks(self) -> list[int]:
        """In their order."""
        return list(range(size()))

    def rank(self) -> int:
        """Of this process."""
        return rank()

    def size(self) -> int:
        """How many there are."""
        return size()

    def included(self) -> bool:
        """Whether this process belongs to it."""
        return True


global_process_set: Final = WholeJob()


def is_initialized() -> bool:
    """Whether this process has met the others."""
    return bool(_DISTRIBUTED.is_available() and _DISTRIBUTED.is_initialized())


def rank() -> int:
    """Of this process."""
    return int(_DISTRIBUTED.get_rank())


def size() -> int:
    """How many processes train together."""
    return int(_DISTRIBUTED.get_world_size())


def nccl_built() -> bool:
    """Whether links read the memory of a GPU themselves."""
    return bool(_DISTRIBUTED.is_nccl_available())


@dataclass(frozen=True)
class Handle:
    """A message on its way."""

    work: Any
    result: Callable[[], torch.Tensor]


def poll(handle: Handle) -> bool:
    """Whether it has ended, well or not."""
    return bool(handle.work.is_completed())


def synchronize(handle: Handle) -> torch.Tensor:
    """What has arrived.

    Raises:
        DistBackendError: another rank has gone.
    """
    try:
        handle.work.wait()
    except RuntimeError as error:
        raise HorovodInternalError(
            explain(
                "a message of torch.distributed failed",
                rank=rank(),
                observed=str(error).strip().split("\n", maxsplit=1)[0],
                expected="all ranks are there",
                action="look for the first rank that failed",
            )
        ) from error
    return handle.result()


def allreduce_async_(
    tensor: torch.Tensor, *, name: str, op: Operation, process_set: WholeJob
) -> Handle:
    """The sum of all ranks, in place."""
    del name, process_set  # there is one order, and one set
    if op is not Sum:
        raise NotSupportedError(explain("ranks ask each other for sums alone", observed=op))
    work = _control().allreduce([tensor])
    return Handle(work, lambda: tensor)


def allgather_async(tensor: torch.Tensor, *, name: str, process_set: WholeJob) -> Handle:
    """The tensors of all ranks one after another; each has the same shape."""
    del name, process_set
    parts = [torch.empty_like(tensor) for _ in range(size())]
    work = _control().allgather([parts], [tensor])
    return Handle(work, lambda: torch.cat(parts))


def broadcast_async_(
    tensor: torch.Tensor, root_rank: int, *, name: str, process_set: WholeJob
) -> Handle:
    """What one rank has, in place."""
    del name, process_set
    work = _control().broadcast(tensor, root_rank)
    return Handle(work, lambda: tensor)


def sparse_allreduce_async(
    tensor: torch.Tensor, name: str, op: Operation, *, process_set: WholeJob
) -> Callable[[], torch.Tensor]:
    """The sum or average of sparse tensors of all ranks, which travel when it is asked for."""

    def gather() -> torch.Tensor:
        mine = tensor.coalesce()
        count = torch.tensor([mine.values().shape[0]], dtype=torch.int64, device="cpu")
        counts = synchronize(allgather_async(count, name=name, process_set=process_set)).tolist()
        indices = _gathered(mine.indices().t().contiguous(), counts, name)
        values = _gathered(mine.values(), counts, name)
        scaled = values / size() if op is Average else values
        everyone = torch.sparse_coo_tensor(indices.t(), scaled, mine.shape, check_invariants=False)
        return everyone.to(tensor.device)

    return gather


def _gathered(rows: torch.Tensor, counts: list[int], name: str) -> torch.Tensor:
    """The rows of all ranks, which need not have as many."""
    room = rows.new_zeros((max(counts), *rows.shape[1:]), device="cpu")
    room[: rows.shape[0]] = rows
    everyone = synchronize(allgather_async(room, name=name, process_set=global_process_set))
    parts = everyone.view(size(), *room.shape)
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])


def _control() -> Any:
    return _control_beside(_DISTRIBUTED.group.WORLD)


@functools.lru_cache(maxsize=1)
def _control_beside(_: Any) -> Any:
    """A group of its own, so that what the script sends does not come in between."""
    return _DISTRIBUTED.ProcessGroupGloo(own_store("deft.control"), rank(), size(), _FOREVER)


def own_store(name: str) -> Any:
    """A part of the job's store that nobody else knows. A job that torchrun has started again finds
    the addresses of its dead ranks in the store, also where torch makes a group."""
    job = _DISTRIBUTED.distributed_c10d._get_default_store()  # noqa: SLF001  new_group's own
    return _DISTRIBUTED.PrefixStore(f"{name}.{Config.launched_attempt()}", job)
