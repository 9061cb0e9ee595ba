"""What is in flight in a simulated training, and the corrections that are tried on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import torch

from deft_horovod.runtime.correct.guesses import GUESSES, Arrived, Guess
from deft_horovod.runtime.correct.lookahead import Lookahead
from deft_horovod.runtime.reduce.updates import faster, options_of, update_only

Gradients = dict[torch.Tensor, torch.Tensor]

_EPSILON: Final = 1e-7  # of the adaptive compensation, as in SAPipe's published code
_WARM_UP: Final = 50  # steps


def _fed_back(own: torch.Tensor, arrived: Arrived | None, ranks: int) -> torch.Tensor | None:
    """What the last guess was wrong by is added to the next one; over ranks these errors are zero
    in the mean, as for `local`. Ours."""
    del ranks
    return None if arrived is None else own + arrived.average - arrived.own


TRIED: Final[Mapping[str, Guess]] = MappingProxyType(
    {**GUESSES, "fed_back": Guess("own, and the error of the last guess", _fed_back)}
)


@dataclass(frozen=True)
class Arm:
    """How updates travel, and what is done about their lateness."""

    late: int = 0  # how many of the task's `first` parts; -1: every parameter
    delay: int = 1
    merge: int = 1
    correction: str = "none"
    strength: float = 0.0  # of a correction that has one
    warmup: int = _WARM_UP  # steps without delay
    below: float = 1.0  # delay only once the learning rate has fallen to this share of its highest
    share: float = 1.0  # of the bytes of what may be late, that which forward uses first
    partial: bool = False  # sums that are not complete yet are predicted as well
    power: float = 0.0  # an update for k steps has k to this power times the learning rate

    @property
    def name(self) -> str:
        if not self.late:
            return "synchronous"
        parts = [f"{'all' if self.late < 0 else self.late} late by {self.delay}"]
        if self.merge > 1:
            parts.append(f"merged by {self.merge}")
        if self.warmup != _WARM_UP:
            parts.append(f"from step {self.warmup} on")
        if self.below < 1.0:
            parts.append(f"below {self.below:g} of the rate")
        if self.share < 1.0:
            parts.append(f"{self.share:.0%} of the bytes")
        if self.partial:
            parts.append("with what is not complete")
        if self.power:
            parts.append(f"rate by k^{self.power:g}")
        strength = f"({self.strength:g})" if self.strength else ""
        return ", ".join([*parts, self.correction + strength])


@dataclass
class Generation:
    """The gradients of some steps as one update."""

    apply_step: int
    average: Gradients
    own: list[Gradients]  # of each worker
    then: Gradients  # the parameters when its last gradient was computed
    steps: int


class Lateness:
    """Applies what is due at each boundary, and predicts what is in flight before each forward."""

    def __init__(
        self,
        arm: Arm,
        late: Sequence[torch.Tensor],
        optimizers: Sequence[torch.optim.Optimizer],
        mean_of_merged: bool,
        begin: int,
    ) -> None:
        self._arm = arm
        self._begin = begin  # the first step whose update may be late
        self._late = tuple(late)
        self._optimizers = tuple(optimizers)
        self._mean_of_merged = mean_of_merged
        self._lookaheads = [Lookahead(optimizer) for optimizer in optimizers]
        self._collected: list[tuple[Gradients, list[Gradients]]] = []
        self._flying: list[Generation] = []
        self._before: Gradients = {}  # late parameters before their latest update
        self._arrived: Gradients = {}  # the latest average
        self._arrived_own: list[Gradients] = []

    # --- at a boundary -------------------------------------------------------------------------
    def boundary(self, step: int, own: Sequence[Gradients], average: Gradients) -> None:
        due = dict(average)
        if self._late:
            for p in self._late:
                del due[p]
            self._collect(step, own, average)
            self._before = {p: p.detach().clone() for p in self._late}
        self._update(due, 1.0)
        while self._flying and self._flying[0].apply_step <= step:
            generation = self._flying.pop(0)
            self._update(self._taken(generation), self._late_rate(generation.steps))

    def _late_rate(self, steps: int) -> float:
        slower = self._arm.strength if self._arm.correction == "slower" else 1.0
        return slower * float(steps**self._arm.power)

    def _collect(self, step: int, own: Sequence[Gradients], average: Gradients) -> None:
        arm = self._arm
        delayed = step >= self._begin
        parts = [{p: one[p] for p in self._late} for one in own]
        self._collected.append(({p: average[p] for p in self._late}, parts))
        if delayed and len(self._collected) < arm.merge:
            return
        self._flying.append(
            Generation(
                apply_step=step + arm.delay if delayed else step,
                average=self._merged([one for one, _ in self._collected]),
                own=[
                    self._merged([workers[w] for _, workers in self._collected])
                    for w in range(len(own))
                ],
                then={p: p.detach().clone() for p in self._late},
                steps=len(self._collected),
            )
        )
        self._collected = []

    def _merged(self, gradients: Sequence[Gradients]) -> Gradients:
        weight = 1.0 / len(gradients) if self._mean_of_merged else 1.0
        first, rest = gradients[0], gradients[1:]
        return {p: weight * sum((g[p] for g in rest), first[p]) for p in first}

    def _taken(self, generation: Generation) -> Gradients:
        self._arrived, self._arrived_own = generation.average, generation.own
        return {p: self._compensated(p, g, generation) for p, g in generation.average.items()}

    def _compensated(self, p: torch.Tensor, g: torch.Tensor, of: Generation) -> torch.Tensor:
        """DC-ASGD's term (arXiv 1609.08326), and the forms of SAPipe's published code."""
        strength, moved = self._arm.strength, p.detach() - of.then[p]
        match self._arm.correction:
            case "compensated":
                return g + strength * g * g * moved
            case "compensated_adaptive":
                return g + strength * g * g * moved / (g * g + _EPSILON).sqrt()
        return g

    def _update(self, gradients: Gradients, rate: float) -> None:
        for p, gradient in gradients.items():
            p.grad = gradient
        for optimizer in self._optimizers:
            update_only(optimizer, owned(optimizer, gradients), faster(options_of(optimizer), rate))
        for p in gradients:
            p.grad = None

    # --- before a forward ----------------------------------------------------------------------
    @contextmanager
    def predicted(self, worker: int) -> Iterator[None]:
        """Parameters as this worker predicts them."""
        if self._arm.correction == "extrapolated" and self._before and self._flying:
            with self._extrapolated():
                yield
            return
        with self._cast(self._updates(worker)):
            yield

    @contextmanager
    def true(self) -> Iterator[None]:
        """Parameters as they would be if nothing were late."""
        flying = [(one.average, one.steps) for one in self._flying]
        if self._collected:
            averages = [average for average, _ in self._collected]
            flying.append((self._merged(averages), len(averages)))
        with self._cast(flying):
            yield

    @contextmanager
    def _cast(self, updates: Sequence[tuple[Gradients, int]]) -> Iterator[None]:
        """Parameters after these updates, each of so many steps."""
        for optimizer, lookahead in zip(self._optimizers, self._lookaheads, strict=True):
            mine = [({p: u[p] for p in owned(optimizer, u)}, steps) for u, steps in updates]
            options = options_of(optimizer)
            lookahead.cast([(u, faster(options, self._late_rate(steps))) for u, steps in mine if u])
        try:
            yield
        finally:
            for lookahead in self._lookaheads:
                lookahead.lift()

    @contextmanager
    def _extrapolated(self) -> Iterator[None]:
        true = {p: p.detach().clone() for p in self._late}
        for p in self._late:
            p.data.add_(true[p] - self._before[p], alpha=len(self._flying))
        try:
            yield
        finally:
            for p, value in true.items():
                p.data.copy_(value)

    def _updates(self, worker: int) -> list[tuple[Gradients, int]]:
        """What is guessed of each generation in flight, and of how many steps it is."""
        guess = TRIED.get(self._arm.correction)
        if guess is None or not self._arrived:
            return []
        flying = [(one.own[worker], one.steps) for one in self._flying]
        if self._arm.partial and self._collected:
            parts = [workers[worker] for _, workers in self._collected]
            flying.append((self._merged(parts), len(parts)))
        n = len(self._arrived_own)
        arrived = {p: Arrived(self._arrived[p], self._arrived_own[worker][p]) for p in self._late}
        return [
            (
                {p: g for p in self._late if (g := guess.guess(own[p], arrived[p], n)) is not None},
                steps,
            )
            for own, steps in flying
        ]


def owned(optimizer: torch.optim.Optimizer, tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    mine = {p for group in optimizer.param_groups for p in group["params"]}
    return [p for p in tensors if p in mine]
