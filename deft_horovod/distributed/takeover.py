"""Takes over the optimizers of a script that trains with ``DistributedDataParallel``.

The script keeps its objects: an optimizer that updates the parameters of such a model turns into
ours, and what it was goes on inside. As with DDP, averages are in ``p.grad`` when ``backward()``
returns, since nobody can know whether the script reads them there.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import torch

from deft_horovod.config import Config
from deft_horovod.distributed.optimizer import average
from deft_horovod.errors import NotSupportedError, explain
from deft_horovod.peers import stock
from deft_horovod.runtime import wrapper
from deft_horovod.runtime.decide.first_brief import first_brief
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.groups import Groups
from deft_horovod.runtime.ranks.named_parameters import NamedParameter

if TYPE_CHECKING:
    from deft_horovod.distributed.stand_in import StandIn

_T = TypeVar("_T")
_SCHEDULERS: Final = "_wrapped_by_lr_sched"  # so torch's schedulers mark the step() they wrap


class TakenOptimizer(wrapper.DistributedOptimizer):
    """It was the script's own."""

    finds_unused: bool = False

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """As ours. Schedulers ask whether it was called, also those that are older than us."""
        self._opt_called = True
        return super().step(closure)

    # Neither schedulers nor torch's hooks of step() wrap it once more.
    setattr(step, _SCHEDULERS, True)
    step.hooked = True  # type: ignore[attr-defined]

    def end_backward(self) -> None:
        """A backward pass is over: what it has completed travels now."""
        if self._engine is None or not self._engine.complete:
            return
        unused = self._unused() if self.finds_unused else []
        self._synchronized = False
        self._reduce(hold_gated=False)
        for tensor in unused:
            tensor.grad = None

    def _unused(self) -> list[torch.Tensor]:
        """Those that have no gradient on any rank; all ranks ask together."""
        tensors = [member.tensor for member in self._members]
        agreement = Agreement(self._brief.reduction.process_set, self._brief.config.deadline_s)
        used = agreement.union([tensor.grad is not None for tensor in tensors])
        return [tensor for tensor, somewhere in zip(tensors, used, strict=True) if not somewhere]

    def _reduced(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        """Its backward passes have averaged already."""

        def evaluate() -> Any:
            with torch.enable_grad():
                return closure()

        return evaluate


class Takeover:
    """Of one process. Optimizers are taken in the order in which they were made, so on all ranks
    in the same one."""

    def __init__(self, settings: Config) -> None:
        self._settings = settings
        self._models: list[weakref.ref[StandIn]] = []
        self._waiting: list[weakref.ref[torch.optim.Optimizer]] = []
        self._inner: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._taken: list[weakref.ref[TakenOptimizer]] = []
        self._changed = False
        self._passes = 0  # backward passes under way, one within another
        self._lock = threading.Lock()

    def add_model(self, model: StandIn) -> None:
        """It is trained by all ranks."""
        self._models.append(weakref.ref(model))
        self._changed = True

    def add_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """It was made, or was given more parameters."""
        if optimizer in self._inner or any(optimizer is known for known in _alive(self._waiting)):
            return
        self._waiting.append(weakref.ref(optimizer))
        self._changed = True

    def take(self) -> None:
        """Those that are complete and update the parameters of a model that all ranks train."""
        if not self._changed or not self._models:
            return
        self._changed = False
        for optimizer in list(_alive(self._waiting)):
            if members := self._members(optimizer):
                self._require_free(optimizer)
                self._turn(optimizer, members)
        self._waiting = [w for w in self._waiting if (o := w()) is not None and not _is_ours(o)]

    def optimizers_of(self, model: StandIn) -> list[TakenOptimizer]:
        """Which update any of its parameters."""
        mine = {id(p) for p in model.module.parameters()}
        return [one for one in _alive(self._taken) if mine & _ids(one)]

    @contextmanager
    def backward(self) -> Iterator[None]:
        """Around each backward pass. Checkpointing runs passes within passes; only the outermost
        has all gradients when it ends."""
        with self._lock:
            self._passes += 1
        try:
            yield
        finally:
            with self._lock:
                self._passes -= 1
        if not self._passes:
            for optimizer in _alive(self._taken):
                optimizer.end_backward()

    def _members(self, optimizer: torch.optim.Optimizer) -> tuple[NamedParameter, ...]:
        """Its parameters by their names in the models; none, if it has nothing to do with them."""
        models = list(_alive(self._models))
        names = {
            id(tensor): name if len(models) == 1 else f"{number}.{name}"
            for number, model in enumerate(models)
            for name, tensor in model.module.named_parameters()
        }
        tensors = [p for group in optimizer.param_groups for p in group["params"]]
        known = [NamedParameter(names[id(p)], p) for p in tensors if id(p) in names]
        if known and len(known) < len(tensors):
            raise NotSupportedError(
                explain(
                    f"{type(optimizer).__name__} updates parameters that DistributedDataParallel "
                    "averages, and others",
                    observed=f"{len(tensors) - len(known)} of {len(tensors)} are in no such model",
                    action="give those an optimizer of their own, or put them into the model",
                )
            )
        return tuple(known)

    def _require_free(self, optimizer: torch.optim.Optimizer) -> None:
        """Nobody else averages its gradients or has kept its step()."""
        kind = type(optimizer).__name__
        if any(_ids(optimizer) & _ids(other) for other in _alive(self._taken)):
            raise NotSupportedError(
                explain(
                    f"{kind} updates parameters that another optimizer updates, too",
                    action="let one optimizer update each parameter",
                )
            )
        if not hasattr(optimizer.step, _SCHEDULERS) and "step" in vars(optimizer):
            raise NotSupportedError(
                explain(
                    f"step() of this {kind} was replaced, and its gradients would not be averaged",
                    observed=repr(vars(optimizer)["step"]),
                    action="use deft_horovod.distributed.DistributedOptimizer",
                )
            )

    def _turn(self, optimizer: torch.optim.Optimizer, members: tuple[NamedParameter, ...]) -> None:
        mine = _ids(optimizer)
        models = [
            model
            for model in _alive(self._models)
            if mine & {id(p) for p in model.module.parameters()}
        ]
        compressions = {model.compression for model in models}
        if len(compressions) > 1:
            raise NotSupportedError(
                explain(
                    "one optimizer updates models of which only some travel in 16 bits",
                    action="register the communication hook for all of them",
                )
            )
        reduction = average(compressions.pop())
        brief = first_brief(self._settings, reduction, Groups.parse(None), optimizer)
        # Averages are in p.grad when backward() returns, and nobody calls flush().
        brief = replace(brief, gates=False)
        inner = object.__new__(type(optimizer))
        inner.__dict__.update(optimizer.__dict__)
        inner.__dict__.pop("step", None)
        self._inner.add(inner)
        optimizer.__dict__.clear()
        optimizer.__class__ = TakenOptimizer
        active = stock.size() > 1
        TakenOptimizer.__init__(optimizer, inner, members, brief, 1, active)  # type: ignore[arg-type]
        taken = cast("TakenOptimizer", optimizer)
        taken.finds_unused = any(model.finds_unused for model in models)
        self._taken.append(weakref.ref(taken))


def around(run: Callable[..., _T], takeover: Takeover) -> Callable[..., _T]:
    """``torch.autograd.backward``, and averages at its end."""

    def backward(*args: Any, **kwargs: Any) -> _T:
        with takeover.backward():
            return run(*args, **kwargs)

    return backward


def _ids(optimizer: torch.optim.Optimizer) -> set[int]:
    return {id(p) for group in optimizer.param_groups for p in group["params"]}


def _is_ours(optimizer: torch.optim.Optimizer) -> bool:
    return type(optimizer) is TakenOptimizer


def _alive(known: list[weakref.ref[_T]]) -> Iterator[_T]:
    return (one for ref in known if (one := ref()) is not None)
