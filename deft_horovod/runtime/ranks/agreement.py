"""One rank decides, all verify: what has to be equal is compared before anything travels.

Every question is a collective of Horovod with a deadline, so that a rank that never comes is an
error with a name and not a hang.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch

from deft_horovod.errors import AgreementError, WaitTimeoutError, explain
from deft_horovod.peers import OVER_TORCH, stock
from deft_horovod.runtime.ranks.waits import poll_until_done

_POLL_S: Final = 0.0005
_LEAST_ROOM: Final = 64
_ABSENT: Final = "(absent)"
# Named, like every dtype: the user may have set other defaults (torch.set_default_device).
_HOST: Final = torch.device("cpu")


def _packed(text: str) -> torch.Tensor:
    return _packed_bytes(text.encode())


def _packed_bytes(content: bytes) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8).copy())


def _count(number: int) -> torch.Tensor:
    return torch.tensor([number], dtype=torch.int64, device=_HOST)


def _room(length: int) -> int:
    """For texts of this length and others: a power of two, so that there are few."""
    return max(_LEAST_ROOM, 1 << (length - 1).bit_length()) if length else _LEAST_ROOM


def _padded(body: torch.Tensor, room: int) -> torch.Tensor:
    return torch.nn.functional.pad(body, (0, room - body.numel()))


def _unpacked(body: torch.Tensor) -> str:
    return bytes(body.numpy()).decode()


def canonical(facts: Mapping[str, Any]) -> str:
    """The same text for equal facts on every rank."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), default=str)


def first_difference(mine: Any, theirs: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """Where two nested facts differ first: (path, mine, theirs)."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key in sorted({*mine, *theirs}):
            sides = (mine.get(key, _ABSENT), theirs.get(key, _ABSENT))
            found = first_difference(*sides, f"{path}{key}.")
            if found:
                return found
        return None
    if isinstance(mine, list) and isinstance(theirs, list):
        for i, (a, b) in enumerate(zip(mine, theirs, strict=False)):
            found = first_difference(a, b, f"{path}{i}.")
            if found:
                return found
        if len(mine) != len(theirs):
            return f"{path}length", len(mine), len(theirs)
        return None
    # True equals 1 and 1 equals 1.0 in Python, but not in the text that is compared.
    same = type(mine) is type(theirs) and mine == theirs
    return None if same else (path.rstrip("."), mine, theirs)


def device_of_zeros(devices: Iterable[torch.device]) -> torch.device:
    """Where Horovod needs the zeros of a rank in ``hvd.join(device)`` if gradients are on these:
    all of them are in one place, and NCCL takes none from host memory."""
    if OVER_TORCH or not stock.nccl_built():
        return _HOST
    return next((device for device in devices if device.type == "cuda"), _HOST)


class Agreement:
    """Questions to all ranks of a process set. All ranks must ask the same ones in order.

    Each name is always that of tensors of one shape. Another shape under a known name would make
    Horovod rearrange its response cache, and with it the order in which waiting messages run.
    """

    def __init__(self, process_set: Any, deadline_s: float, zeros: torch.device = _HOST) -> None:
        """`zeros`: where a rank in ``hvd.join()`` has those that it gives (`device_of_zeros`)."""
        self._process_set = process_set
        self._zeros = zeros
        self._deadline_s = deadline_s
        self._prefix = "deft.agreement"

    def everyone_here(self) -> bool:
        """Whether no rank is in ``hvd.join()``: those take part only in sums, with zeros."""
        count = torch.ones(1, dtype=torch.float32, device=self._zeros)
        handle = stock.allreduce_async_(
            count, name=self._prefix + ".here", op=stock.Sum, process_set=self._process_set
        )
        self._wait(handle, "the other ranks")
        return int(count.item()) == int(self._process_set.size())

    def require_equal(self, facts: Mapping[str, Any]) -> None:
        """Raises on every rank, with the first difference and both sides, unless all are equal."""
        text = canonical(facts)
        digest = _packed_bytes(hashlib.sha256(text.encode()).digest())
        digests = self._gather(digest.unsqueeze(0), ".digest")
        if bool((digests == digests[0]).all()):
            return
        everyone = [json.loads(theirs) for theirs in self.collect(text)]
        raise AgreementError(self._explain(everyone))

    def collect(self, text: str) -> list[str]:
        """What every rank says, in the order of the ranks. Every rank has to say something."""
        body = _packed(text)
        lengths = self._gather(_count(body.numel()), ".length").tolist()
        room = _room(max(lengths))
        bodies = self._gather(_padded(body, room).unsqueeze(0), f".facts.{room}")
        return [_unpacked(row[:length]) for row, length in zip(bodies, lengths, strict=True)]

    def union(self, flags: Sequence[bool]) -> list[bool]:
        """Which flags are set on any rank."""
        sums = torch.tensor([float(flag) for flag in flags], dtype=torch.float32, device=_HOST)
        if sums.numel() == 0:
            return []
        handle = stock.allreduce_async_(
            sums,
            name=f"{self._prefix}.union.{len(flags)}",
            op=stock.Sum,
            process_set=self._process_set,
        )
        self._wait(handle, "the flags of the other ranks")
        return [value > 0 for value in sums.tolist()]

    def gather(self, numbers: Sequence[float]) -> list[list[float]]:
        """The numbers of every rank, as many of each; in the order of the ranks."""
        mine = torch.tensor([list(numbers)], dtype=torch.float64, device=_HOST)
        gathered: list[list[float]] = self._gather(mine, f".numbers.{len(numbers)}").tolist()
        return gathered

    def share(self, text: str | None) -> str:
        """The text that the deciding rank (the lowest) passes in."""
        root = self.decider
        mine = _packed("" if text is None else text)
        length = _count(mine.numel())
        self._broadcast(length, root, ".share.length")
        room = _room(int(length.item()))
        body = _padded(mine if text is not None else mine.new_zeros(0), room)
        self._broadcast(body, root, f".share.text.{room}")
        return _unpacked(body[: int(length.item())])

    @property
    def decider(self) -> int:
        """The rank that decides: the lowest of the process set."""
        return int(min(self._process_set.ranks))

    @property
    def rank(self) -> int:
        """This rank, as the whole job counts."""
        return int(stock.rank())

    @property
    def deciding(self) -> bool:
        """Whether this rank decides."""
        return self.rank == self.decider

    def _gather(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        handle = stock.allgather_async(
            tensor, name=self._prefix + name, process_set=self._process_set
        )
        return self._wait(handle, "the facts of the other ranks")

    def _broadcast(self, tensor: torch.Tensor, root: int, name: str) -> None:
        handle = stock.broadcast_async_(
            tensor, root, name=self._prefix + name, process_set=self._process_set
        )
        self._wait(handle, f"rank {root}'s decision")

    def _wait(self, handle: int, what: str) -> torch.Tensor:
        if not poll_until_done(handle, self._deadline_s, _POLL_S):
            raise WaitTimeoutError(
                explain(
                    f"the ranks could not agree on a plan: this rank waits for {what}",
                    rank=stock.rank(),
                    observed=f"no answer within {self._deadline_s:g} s",
                    expected="every rank reaches its first optimizer step",
                    action="look for the first rank that failed, or that runs plain Horovod "
                    "(DEFT_DISABLE is set there); DEFT_DEADLINE_S changes the deadline",
                )
            )
        result: torch.Tensor = stock.synchronize(handle)
        return result

    def _explain(self, everyone: Sequence[dict[str, Any]]) -> str:
        ranks = sorted(self._process_set.ranks)
        for rank, theirs in zip(ranks[1:], everyone[1:], strict=False):
            found = first_difference(everyone[0], theirs)
            if found is None:
                continue
            path, first, other = found
            return explain(
                f"the ranks disagree: '{path}' differs",
                rank=stock.rank(),
                tensor=_tensor_at(path, everyone[0], theirs),
                observed=f"rank {rank}: {other!r}",
                expected=f"rank {ranks[0]}: {first!r}",
                action="make model, optimizer, options (also DEFT_* variables) and installed "
                "versions the same on all ranks",
            )
        return explain("the ranks disagree, but not in their facts", rank=stock.rank())


def _tensor_at(path: str, facts: dict[str, Any], others: dict[str, Any]) -> str | None:
    """The tensor that a difference is about; of a longer list the first that the other lacks."""
    first, _, rest = path.partition(".")
    if first != "parameters" or not rest:
        return None
    where = rest.split(".")[0]
    longer, shorter = sorted((facts["parameters"], others["parameters"]), key=len, reverse=True)
    index = len(shorter) if where == "length" else int(where)
    return str((facts["parameters"] if index < len(shorter) else longer)[index]["name"])


def largest(agreement: Agreement, numbers: Sequence[float]) -> list[float]:
    """Of each number the largest that any rank has."""
    return [max(column) for column in zip(*agreement.gather(numbers), strict=True)]
