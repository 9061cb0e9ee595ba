"""The optimizer that users hold: theirs, with gradients averaged over ranks before each step.

It holds the user's optimizer and shares its groups, state and hooks; it never computes an update.
To schedulers, GradScaler and checkpoints it looks like any torch optimizer.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from typing_extensions import Self

from deft_horovod.errors import DeftError, NotSupportedError, explain
from deft_horovod.peers import stock
from deft_horovod.plan import Plan
from deft_horovod.profile import Profile
from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.engine import Engine
from deft_horovod.runtime.metrics.recorder import Recorder
from deft_horovod.runtime.process import this_process
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.reduce.in_flight import KEY
from deft_horovod.runtime.reduce.scaler_call import scaler_call
from deft_horovod.runtime.reduce.updates import update_all

_TWICE = (
    "optimizer.step() after optimizer.synchronize(), without optimizer.skip_synchronize(): Horovod "
    "would average the gradients once more. Put step() inside `with optimizer.skip_synchronize():`."
)
_SHARED = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def require_passes(passes: int) -> None:
    """Of a step, backward."""
    if passes <= 0:
        raise NotSupportedError(explain("backward_passes_per_step must be > 0", observed=passes))


def _bare() -> DistributedOptimizer:
    """For pickle, which would take the class from ``__class__``."""
    return object.__new__(DistributedOptimizer)


class DistributedOptimizer(torch.optim.Optimizer):
    """Wraps a torch optimizer; made by :func:`deft_horovod.torch.DistributedOptimizer`."""

    inner: torch.optim.Optimizer
    _members: tuple[NamedParameter, ...]
    _brief: Brief
    _passes_per_step: int
    _active: bool
    _recorder: Recorder | None  # of metrics

    def __init__(
        self,
        inner: torch.optim.Optimizer,
        members: tuple[NamedParameter, ...],
        brief: Brief,
        passes_per_step: int,
        active: bool,
    ) -> None:
        self.__setstate__(
            {
                "inner": inner,
                "_members": members,
                "_brief": brief,
                "_passes_per_step": passes_per_step,
                "_active": active,
            }
        )
        if self._engine is not None:
            self._recorder = this_process().recorder(brief.config)

    # --- what torch sees ---------------------------------------------------------------------
    @property
    def _step_supports_amp_scaling(self) -> bool:
        """What GradScaler asks. As a rule it unscales p.grad itself and then calls step(), which is
        right for any inner optimizer; late updates need the scale of an earlier step."""
        engine: Engine | None = self.__dict__.get("_engine")
        return engine is not None and engine.handles_scaling

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The user's own groups. Reading them has no effect, unless a GradScaler reads."""
        engine: Engine | None = self.__dict__.get("_engine")
        if engine is not None:
            call = scaler_call(sys._getframe(1))  # noqa: SLF001  the one way to learn who reads
            if call is not None:
                engine.scales.asked = True
                self._reduce(hold_gated=False)
                if engine.late and engine.planned is not None:
                    engine.scales.meet(engine.planned, call)
        return self.inner.param_groups

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        self.inner.param_groups = groups

    @property
    def state(self) -> Any:
        """The user's optimizer's state, with the updates of the last step."""
        engine: Engine | None = self.__dict__.get("_engine")
        if engine is not None:
            engine.show_state()
        return self.inner.state

    @state.setter
    def state(self, state: Any) -> None:
        self.inner.state = state

    @property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        """The user's optimizer's defaults."""
        return self.inner.defaults

    def __getattr__(self, name: str) -> Any:
        if name == "inner" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __repr__(self) -> str:
        return f"DistributedOptimizer({self.inner!r})"

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """As Horovod's, it is an instance of the user's own class, too, for those who ask."""
        return type(self.__dict__.get("inner", self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _bare, (), self.__getstate__()

    @property
    def op(self) -> Any:
        """The operation that combines the gradients of all ranks."""
        return self._brief.reduction.op

    @property
    def gradient_predivide_factor(self) -> float:
        """What gradients are divided by before they are summed, and multiplied by afterwards."""
        return self._brief.reduction.predivide

    @property
    def sparse_as_dense(self) -> bool:
        """Whether sparse gradients travel dense."""
        return self._brief.reduction.sparse_as_dense

    @property
    def process_set(self) -> Any:
        """The ranks that gradients are averaged over."""
        return self._brief.reduction.process_set

    @property
    def _compression(self) -> Any:
        """As Horovod's own calls it."""
        return self._brief.reduction.compression

    @property
    def _parameter_names(self) -> dict[torch.Tensor, str]:
        """Horovod's own has it, and scripts read it."""
        return {member.tensor: member.name for member in self._members}

    def __getstate__(self) -> dict[str, Any]:
        if self._engine is not None:
            self._engine.open_gates()
        kept = ("inner", "_members", "_brief", "_passes_per_step", "_active")
        return {key: self.__dict__[key] for key in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # One dictionary of hooks for both: a hook runs once, whichever side it was given to.
        self.__dict__.update({name: getattr(self.inner, name) for name in _SHARED})
        self._zero_grad_profile_name = "Optimizer.zero_grad#DistributedOptimizer.zero_grad"
        self._synchronized = False
        self._asked = False  # by a call of synchronize()
        self._should_synchronize = True
        self._engine = self._make_engine()
        self._recorder = None  # a copy writes nothing

    def _make_engine(self) -> Engine | None:
        if not self._active:
            return None
        # No cycle: once the user lets go of this, its hooks are gone before another wraps the same
        # parameters.
        this = weakref.proxy(self)
        members = lambda: this._members  # noqa: E731, SLF001
        return Engine(self.inner, members, self._brief, self._passes_per_step, this_process())

    # --- what Horovod's users call -----------------------------------------------------------
    @property
    def backward_passes_per_step(self) -> int:
        """How many backward passes add up before gradients travel."""
        return self._passes_per_step

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Changes how many backward passes add up before gradients travel."""
        require_passes(passes)
        self._passes_per_step = passes
        if self._engine is not None:
            self._engine.set_passes_per_step(passes)

    def synchronize(self) -> None:
        """Waits until ``p.grad`` holds the averages of this step."""
        self._reduce(hold_gated=False)
        self._asked = True

    def _reduce(self, hold_gated: bool) -> None:
        if self._engine is not None and (self._engine.pending or not self._synchronized):
            self._engine.synchronize(hold_gated)
        self._synchronized = True

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """``step()`` inside does not reduce again; for use after :meth:`synchronize`."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes inside only add to ``p.grad``; the sums travel in the next one outside.

        It counts beside ``backward_passes_per_step``, which may stay 1.
        """
        self._count_passes(False)
        try:
            yield
        finally:
            self._count_passes(True)

    def _count_passes(self, count: bool) -> None:
        if self._engine is not None:
            self._engine.set_adding(adding=not count)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Averages what is not averaged yet and lets the user's optimizer update."""
        if closure is not None:
            return self._step_with(closure)
        if self._should_synchronize:
            if self._asked:
                warnings.warn(_TWICE, stacklevel=2)
            self._reduce(hold_gated=True)
        elif self._engine is not None and self._engine.complete:
            raise DeftError(
                explain(
                    "step() was called in skip_synchronize() with gradients that are not averaged",
                    rank=stock.rank(),
                    expected="optimizer.synchronize() after the last backward()",
                    action="call synchronize() first, or step() without skip_synchronize()",
                )
            )
        self._synchronized = self._asked = False
        if self._engine is not None and self._engine.late:
            self._unscale(self._engine)
        done = self._update()
        self._after_step()
        return done

    def _step_with(self, closure: Callable[[], Any]) -> Any:
        evaluate = self._reduced(closure)
        if self._engine is not None and self._engine.late:
            loss = evaluate()
            self._update()
        else:
            loss = update_all(self.inner, None, evaluate)
        self._after_step()
        return loss

    def _update(self) -> Any:
        planned = self._engine.planned if self._engine is not None else None
        return update_all(self.inner, planned if planned is not None and planned.late else None)

    def _unscale(self, engine: Engine) -> None:
        engine.scales.hide()
        if "found_inf" in self.__dict__ and engine.planned is not None:  # a GradScaler is at work
            everyone = (p for group in self.inner.param_groups for p in group["params"])
            scale = self.__dict__.get("grad_scale")
            engine.scales.unscale_boundary(engine.planned, scale, everyone)

    def _after_step(self) -> None:
        if self._engine is not None:
            self._engine.after_step()
        if self._recorder is not None:
            self._recorder.step(self.stats)

    # torch would wrap step() to run the step hooks; the inner step() runs them already.
    step.hooked = True  # type: ignore[attr-defined]

    def _reduced(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def evaluate() -> Any:
            if self._engine is not None:
                self._engine.open_gates()
            with torch.enable_grad():
                loss = closure()
            self._synchronized = False
            self._reduce(hold_gated=False)
            self._synchronized = self._asked = False
            return loss

        return evaluate

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Clears gradients. Gradients that are on their way are thrown away on all ranks."""
        if self._engine is not None:
            to_zero = (args[0] if args else kwargs.get("set_to_none")) is False
            self._engine.throw_away(to_zero=to_zero)
        self._synchronized = self._asked = False
        self.inner.zero_grad(*args, **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters; they join the plan at the next step."""
        group = dict(param_group)
        given = group["params"]
        listed = [given] if isinstance(given, torch.Tensor) else list(given)
        named = [item if isinstance(item, tuple) else None for item in listed]
        group["params"] = [item[1] if isinstance(item, tuple) else item for item in listed]
        self.flush()
        self.inner.add_param_group(group)
        place = len(self.inner.param_groups) - 1
        added = self.inner.param_groups[-1]["params"]
        self._members = self._members + tuple(
            NamedParameter(pair[0] if pair is not None else f"added.{place}.{j}", tensor)
            for j, (pair, tensor) in enumerate(zip(named, added, strict=True))
        )

    def state_dict(self) -> dict[str, Any]:
        """The user's optimizer's state.

        Where updates come late it also holds what is on its way, so that training can go on as if
        it had never stopped. Any rank may call it alone. Gradients that lie there between
        ``backward()`` and ``step()`` are no part of it.
        """
        in_flight = self._engine.in_flight() if self._engine is not None else None
        state = self.inner.state_dict()
        return state if in_flight is None else {**state, KEY: in_flight}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the user's optimizer's state, and what was on its way. Gradients that are on their
        way now are thrown away."""
        if self._engine is not None:
            self._engine.recover()
        self._synchronized = self._asked = False
        self._should_synchronize = True
        rest = dict(state_dict)
        in_flight = rest.pop(KEY, None)
        self.inner.load_state_dict(rest)
        if self._engine is not None:
            self._engine.restore(in_flight)

    # --- ours --------------------------------------------------------------------------------
    def flush(self, *, rests: bool = False) -> None:
        """Applies every update that is still on its way, so that parameters can be read.

        Where updates come late (``stats()["late"]``) all ranks have to call it, between the same
        two steps. Gradients of a step that has not ended stay in ``p.grad``.

        `rests`: the gradients of the next step travel in full precision, together with what
        rounding has left of those before. All ranks have to call it, between ``step()`` and
        ``backward()``. Where nothing travels in fewer bits it changes nothing.
        """
        if self._engine is not None:
            self._engine.flush(rests=rests)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.flush()

    @property
    def plan(self) -> Plan | None:
        """The plan at work, to be printed or saved; None: there is none (yet)."""
        planned = self._engine.planned if self._engine is not None else None
        return planned.plan if planned is not None else None

    @property
    def profile(self) -> Profile | None:
        """What was measured in this job, the same on all ranks; None: nothing (yet)."""
        return self._engine.profile if self._engine is not None else None

    def stats(self) -> dict[str, Any]:
        """Times, bytes and messages of this rank; see docs/reference/metrics.md."""
        return {"policy": "none"} if self._engine is None else self._engine.stats()
