"""The stock way: one message of Horovod's per gradient, from a Python hook.

It is the readable twin of the planned path, the policy `stock`, and the road for what our plans do
not carry: sparse gradients, foreign compressions, operations other than average and sum.

A dense gradient in host memory enters Horovod's queue through our link, with the arguments that
Horovod's own call would give it: then its completion can be waited for asleep. Everything else is
a call of Horovod's own.

Over torch.distributed there is no queue that brings names together. There all gradients leave in
one order, the reverse of that of the parameters, which is about the order of a backward.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch
from torch.autograd.graph import get_gradient_edge

from deft_horovod.errors import DeftError, WaitTimeoutError, explain, limited
from deft_horovod.peers import QUEUE, stock
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.ranks.sending_order import SendingOrder
from deft_horovod.runtime.ranks.waits import has_ended, poll_until_done, require_horovod
from deft_horovod.runtime.reduce.encoded import factor_of
from deft_horovod.runtime.reduce.planned import open_link
from deft_horovod.runtime.reduce.rests import Rests

_LINKED: Final = (torch.float16, torch.float32, torch.float64)


class _Message(Protocol):
    """A gradient, or a group of them, on its way."""

    def arrives(self, deadline_s: float) -> bool:
        """Waits; whether it has ended in time."""

    def result(self) -> Any:
        """What arrived. Asked for once, and forgotten by Horovod, even if it failed."""


@dataclass(frozen=True)
class _Linked:
    """Through our link, reduced in place."""

    ticket: native.Ticket
    tensor: torch.Tensor

    def arrives(self, deadline_s: float) -> bool:
        return has_ended(self.ticket, deadline_s)

    def result(self) -> torch.Tensor:
        failure = self.ticket.wait(0.0)
        if failure:
            raise stock.HorovodInternalError(failure)
        return self.tensor


@dataclass(frozen=True)
class _Called:
    """A call of Horovod's own."""

    handle: int

    def arrives(self, deadline_s: float) -> bool:
        return poll_until_done(self.handle, deadline_s)

    def result(self) -> Any:
        return stock.synchronize(self.handle)


@dataclass(frozen=True)
class _CalledSparse:
    """A call of Horovod's own with indices and values. It can only be waited for without end."""

    finish: Callable[[], torch.Tensor]

    def arrives(self, _: float) -> bool:
        return True

    def result(self) -> torch.Tensor:
        return self.finish()


class StockReducer:
    """Reduces gradients with Horovod's own calls, each as soon as autograd finishes it."""

    def __init__(
        self,
        members: Sequence[NamedParameter],
        reduction: Reduction,
        prefix: str,
        deadline_s: float,
        groups: Sequence[Sequence[int]] = (),
        rests: Rests | None = None,
        link: native.Link | None = None,
    ) -> None:
        """`rests`: of the plans before; those of the members travel with their gradients. `link`:
        what carries all gradients, in one order; without it that is Horovod's queue."""
        self._rests = rests
        self._members = tuple(members)
        self._deadline_s = deadline_s
        self._reduction = reduction
        self._order = SendingOrder(range(len(members) - 1, -1, -1)) if link is not None else None
        self._link = link if link is not None else _link_of(reduction)
        self._prefix = prefix
        self._groups = [tuple(group) for group in groups]
        self._group_of = {i: group for group in self._groups for i in group}
        self._ready: set[int] = set()
        self._sent: dict[tuple[int, ...], tuple[_Message, Any]] = {}
        self._made_up: set[int] = set()  # gradients that this rank did not have
        self._writes: dict[int, int] = {}  # to gradients that are on their way, as they left
        self._changed: list[str] = []  # of those, what was written to before it arrived

    @property
    def members(self) -> tuple[NamedParameter, ...]:
        return self._members

    def send(self, index: int) -> None:
        """The gradient is complete: reduce it, with its group once that is complete."""
        if index in self._ready:
            raise DeftError(
                explain(
                    "a gradient was completed twice before step()",
                    rank=stock.rank(),
                    tensor=self._members[index].name,
                    expected="one step() after every backward_passes_per_step backward passes",
                    action="raise backward_passes_per_step, or call step() more often",
                )
            )
        for other in (index,) if self._order is None else self._order.ready(index):
            group = self._group_of.get(other, (other,))
            if all(i in self._ready or i == other for i in group):
                self._sent[group] = self._enqueue(group)
                self._writes |= {i: _writes(_gradient(self._members[i].tensor)) for i in group}
        self._ready.add(index)

    def finish(self) -> None:
        """Sends what is missing, waits, and leaves the averages in ``p.grad``."""
        for index in range(len(self._members)):
            if index not in self._ready:
                self.send(index)
        while self._sent:  # after a failure, only those not waited for yet
            group, (message, contexts) = next(iter(self._sent.items()))
            self._await(group, message)
            del self._sent[group]
            self._receive(group, message.result(), contexts)
        for index in self._made_up:
            # Frozen since the plan was made: a zero gradient would still move it (weight decay).
            if not self._members[index].tensor.requires_grad:
                self._members[index].tensor.grad = None
        if self._changed:
            _warn_of_change(self._changed)
        self._changed.clear()
        self._ready.clear()
        self._made_up.clear()
        if self._order is not None:
            self._order.restart()

    def _name(self, group: tuple[int, ...]) -> str:
        return f"{self._prefix}.{self._members[group[0]].name}"

    def _enqueue(self, group: tuple[int, ...]) -> tuple[_Message, Any]:
        require_horovod()
        reduction = self._reduction
        tensors = [self._members[i].tensor for i in group]
        for i, tensor in zip(group, tensors, strict=True):
            if tensor.grad is None:  # another rank may have one
                tensor.grad = torch.zeros_like(tensor)
                self._made_up.add(i)
        gradients = [_gradient(tensor) for tensor in tensors]
        if gradients[0].is_sparse and not reduction.sparse_as_dense:
            call = stock.sparse_allreduce_async(
                gradients[0], self._name(group), reduction.op, process_set=reduction.process_set
            )
            return _CalledSparse(call), None
        dense = [_dense(g) for g in gradients]
        self._add_rests(group, dense)
        wire, contexts = zip(*(reduction.compression.compress(g) for g in dense), strict=True)
        return self._send(group, list(wire)), contexts

    def _add_rests(self, group: tuple[int, ...], gradients: Sequence[torch.Tensor]) -> None:
        for i, gradient in zip(group, gradients, strict=True):
            name, tensor = self._members[i].name, self._members[i].tensor
            if self._rests is not None and tensor.requires_grad:
                self._rests.add_to(gradient, name, tensor, factor_of(self._reduction))

    def _send(self, group: tuple[int, ...], wire: list[torch.Tensor]) -> _Message:
        reduction, name, first = self._reduction, self._name(group), wire[0]
        scale = {"prescale_factor": reduction.prescale, "postscale_factor": reduction.postscale}
        options = {"name": name, "op": reduction.op, "process_set": reduction.process_set, **scale}
        if group in self._groups:
            return _Called(stock.grouped_allreduce_async_(wire, **options))
        linked = first.device.type == "cpu" and first.dtype in _LINKED
        if self._link is not None and (linked or self._order is not None):
            return _Linked(self._link.send(name, "all_reduce", first, first), first)
        return _Called(stock.allreduce_async_(first, **options))

    def _receive(self, group: tuple[int, ...], result: Any, contexts: Any) -> None:
        outputs = result if group in self._groups else [result]
        for i, output, context in zip(group, outputs, contexts or [None] * len(group), strict=True):
            tensor = self._members[i].tensor
            average = self._reduction.compression.decompress(output, context)
            gradient = _gradient(tensor)
            if _writes(gradient) != self._writes.pop(i):
                self._changed.append(self._members[i].name)
            if gradient.is_sparse:
                sparse = average if average.is_sparse else average.to_sparse()
                tensor.grad = sparse.to(gradient.dtype)
            elif gradient.is_contiguous() and gradient.dtype == average.dtype:
                gradient.set_(average)
            else:
                gradient.copy_(average)

    def _await(self, group: tuple[int, ...], message: _Message) -> None:
        if not message.arrives(self._deadline_s):
            raise WaitTimeoutError(
                explain(
                    f"gradients were not reduced within {self._deadline_s:g} s",
                    rank=stock.rank(),
                    tensor=limited([self._members[i].name for i in group]),
                    observed=f"in {QUEUE}: another rank has not sent its part",
                    expected="every rank sends these gradients in this step",
                    action="look for the first rank that failed, is much slower, or skipped this "
                    "step; raise DEFT_DEADLINE_S if it is only slow",
                )
            )


def _link_of(reduction: Reduction) -> native.Link | None:
    """Our way into Horovod's queue, if it knows the operation."""
    if reduction.op not in (stock.Average, stock.Sum):
        return None
    return open_link(reduction)


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    # Horovod refuses other layouts, such as channels_last, and does not know bfloat16.
    dense = (gradient.to_dense() if gradient.is_sparse else gradient).contiguous()
    return dense.float() if dense.dtype == torch.bfloat16 else dense


def _gradient(tensor: torch.Tensor) -> torch.Tensor:
    gradient = tensor.grad
    if gradient is None:
        raise DeftError(
            explain("a gradient vanished between backward() and step()", rank=stock.rank())
        )
    return gradient


def _writes(tensor: torch.Tensor) -> int:
    """How often torch has written to it. What Horovod writes is not counted, but where it copies a
    device's gradient back from host memory, which torch does for it: then nothing is."""
    copied = tensor.is_cuda and not stock.nccl_built()
    return 0 if copied else tensor._version  # noqa: SLF001  (nothing else tells)


def _warn_of_change(names: Sequence[str]) -> None:
    """Of a load before Horovod's write and a store after it, the average is lost on this rank."""
    warnings.warn(
        explain(
            "gradients were changed while Horovod averages them: ranks may part without an error",
            rank=stock.rank(),
            tensor=limited(names),
            observed="a write to p.grad between backward() and step(), if only to clip it",
            action="call optimizer.synchronize() first, and step() in skip_synchronize()",
        ),
        stacklevel=2,
    )


class StockHooks:
    """Python hooks that feed a :class:`StockReducer`, counting backward passes.

    As Horovod's own they are on the nodes that accumulate gradients: these call whatever else is
    registered on a parameter, at whatever time, before a gradient leaves.
    """

    def __init__(self, reducer: StockReducer, passes_per_step: int) -> None:
        self.reducer = reducer
        self.passes_per_step = passes_per_step
        self.adding = False  # passes are not counted
        self._seen = [0] * len(reducer.members)
        trained = {  # without those frozen since they were observed: no gradient comes
            i: member.tensor
            for i, member in enumerate(reducer.members)
            if member.tensor.requires_grad
        }
        # A parameter does not keep its node, and a node takes its hooks with it.
        self._nodes = {i: get_gradient_edge(tensor).node for i, tensor in trained.items()}
        self._handles = [node.register_hook(self._hook(i)) for i, node in self._nodes.items()]

    def _hook(self, index: int) -> Callable[..., None]:
        alive = weakref.ref(self)  # parameters must not keep a reducer that is no longer used

        def hook(*_: object) -> None:
            this = alive()
            if this is not None:
                this.on_gradient(index)

        return hook

    def on_gradient(self, index: int) -> None:
        """One more backward pass has added to this gradient."""
        self._seen[index] += not self.adding
        if self._seen[index] >= self.passes_per_step and not self.adding:
            self.reducer.send(index)

    def reset(self) -> None:
        self._seen = [0] * len(self._seen)

    def detach(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._nodes.clear()
