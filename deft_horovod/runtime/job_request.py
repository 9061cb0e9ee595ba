"""A request to a script: it runs until something is known of it, and ends there.

Every optimizer of the script is measured; the answer is that of the one with the most bytes of
gradients. All ranks know the same optimizers at the same boundary, so all of them end together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Generic, Literal, TypeVar

import torch

from deft_horovod.base.record import Record
from deft_horovod.config import Config
from deft_horovod.runtime.follower import Follower, Wish
from deft_horovod.runtime.ranks.agreement import Agreement

# What a job is run for: itself, its profile, or a comparison of policies.
Purpose = Literal["train", "profile", "compare"]
Answer = TypeVar("Answer", bound=Record)
# On one rank it takes two steps to know an optimizer, and the next one has no beginning.
FEWEST_WARMUP_STEPS: Final = 3


class Answered(SystemExit):
    """The answer was delivered; status 1: it could not be."""


class AskedOptimizer(Follower[object], Generic[Answer]):
    """An optimizer whose answer may be the one that is wanted."""

    def __init__(
        self, request: JobRequest[Answer], kind: str, tensors: Sequence[torch.Tensor]
    ) -> None:
        self.kind = kind
        self.tensors = len(tensors)
        self.gradient_bytes = sum(t.numel() * t.element_size() for t in tensors)
        self.steps = 0
        self.answer: Answer | None = None
        self._request = request

    def end_boundary(self, at: object) -> Wish:  # noqa: ARG002
        self.steps += 1
        self._request.stepped(self)
        return Wish.NOTHING

    def take(self, answer: Answer, agreement: Agreement) -> None:
        """It is measured. All ranks call it at the same boundary; as a rule it does not return.

        Raises:
            Answered: that was the answer that is wanted.
        """
        self.answer = answer
        self._request.finish(agreement)


class JobRequest(Generic[Answer]):
    """Who wants an answer, and over how many steps the profile is taken for it."""

    purpose: ClassVar[Purpose]

    def __init__(
        self,
        warmup_steps: int,
        steps: int,
        deliver: Callable[[AskedOptimizer[Answer], Answer], str],
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> None:
        """`deliver` is called on the deciding rank and returns what went wrong, if anything did;
        `progress` gets the steps that are done and those that are needed."""
        self.warmup_steps = max(FEWEST_WARMUP_STEPS, warmup_steps)
        self.steps = steps
        self.asked_optimizers: list[AskedOptimizer[Answer]] = []
        self._deliver = deliver
        self._progress = progress
        self._status: int | None = None  # with which the script was told to end

    @property
    def needed_steps(self) -> int:
        """Of an optimizer, until its answer is complete."""
        return self.warmup_steps + self.steps

    @property
    def needs(self) -> str:
        """What these steps are for, in words."""
        return f"{self.warmup_steps} to warm up, {self.steps} to measure"

    @property
    def over(self) -> bool:
        """Whether the script was told to end."""
        return self._status is not None

    @property
    def main(self) -> AskedOptimizer[Answer] | None:
        """The optimizer whose answer is wanted: that with the most bytes, as far as is known."""
        return max(self.asked_optimizers, key=lambda s: s.gradient_bytes, default=None)

    def over_config(self, config: Config) -> Config:
        """The options of a script's optimizer, with those of the request in their place."""
        return config.model_copy(
            update={
                "profile_warmup_steps": self.warmup_steps,
                "profile_steps": self.steps,
                "plan_file": "",
            }
        )

    def asked_optimizer(self, kind: str, tensors: Sequence[torch.Tensor]) -> AskedOptimizer[Answer]:
        """Another optimizer of the script, found at the same boundary on all ranks."""
        self.asked_optimizers.append(AskedOptimizer(self, kind, tensors))
        return self.asked_optimizers[-1]

    def require_running(self) -> None:
        """Tells the script to end, if it was told before and caught the exception."""
        if self._status is not None:
            raise Answered(self._status)

    def stepped(self, asked_optimizer: AskedOptimizer[Answer]) -> None:
        """A step of an optimizer has ended."""
        self.require_running()
        if asked_optimizer is self.main:
            self._progress(min(asked_optimizer.steps, self.needed_steps), self.needed_steps)

    def finish(self, agreement: Agreement) -> None:
        """Delivers and ends the script, if the answer that is wanted is there."""
        main = self.main
        if main is None or main.answer is None:
            return  # a larger optimizer is still being measured
        problem = self._deliver(main, main.answer) if agreement.deciding else None
        problem = agreement.share(problem)
        self._status = 1 if problem else 0
        self.require_running()
