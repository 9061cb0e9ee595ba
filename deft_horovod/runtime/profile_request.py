"""A request for the profile of a script: it runs until the profile is complete, and ends there.

Every optimizer of the script is measured; the profile is that of the one with the most bytes of
gradients. All ranks know the same optimizers at the same boundary, so all of them end together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import torch

from deft_horovod.config import Config
from deft_horovod.profile import Profile
from deft_horovod.runtime.agreement import Agreement

# On one rank it takes two steps to know an optimizer, and the next one has no beginning.
FEWEST_WARMUP_STEPS: Final = 3


class ProfileTaken(SystemExit):
    """The profile was delivered; status 1: it could not be."""


class Subject:
    """An optimizer whose profile may be the one that is wanted."""

    def __init__(self, request: ProfileRequest, kind: str, tensors: Sequence[torch.Tensor]) -> None:
        self.kind = kind
        self.tensors = len(tensors)
        self.gradient_bytes = sum(t.numel() * t.element_size() for t in tensors)
        self.steps = 0
        self.profile: Profile | None = None
        self._request = request

    def step(self) -> None:
        """One of its steps has ended."""
        self.steps += 1
        self._request.stepped(self)

    def take(self, profile: Profile, agreement: Agreement) -> None:
        """It is measured. All ranks call it at the same boundary; as a rule it does not return.

        Raises:
            ProfileTaken: that was the profile that is wanted.
        """
        self.profile = profile
        self._request.finish(agreement)


class ProfileRequest:
    """Who wants the profile, and over how many steps."""

    def __init__(
        self,
        warmup_steps: int,
        steps: int,
        deliver: Callable[[Subject, Profile], str],
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> None:
        """`deliver` is called on the deciding rank and returns what went wrong, if anything did;
        `progress` gets the steps that are done and those that are needed."""
        self.warmup_steps = max(FEWEST_WARMUP_STEPS, warmup_steps)
        self.steps = steps
        self.subjects: list[Subject] = []
        self._deliver = deliver
        self._progress = progress
        self._status: int | None = None  # with which the script was told to end

    @property
    def needed_steps(self) -> int:
        """Of an optimizer, until its profile is complete."""
        return self.warmup_steps + self.steps

    @property
    def over(self) -> bool:
        """Whether the script was told to end."""
        return self._status is not None

    @property
    def main(self) -> Subject | None:
        """The optimizer whose profile is wanted: that with the most bytes, as far as is known."""
        return max(self.subjects, key=lambda s: s.gradient_bytes, default=None)

    def over_config(self, config: Config) -> Config:
        """The options of a script's optimizer, with those of the request in their place."""
        return config.model_copy(
            update={
                "profile_warmup_steps": self.warmup_steps,
                "profile_steps": self.steps,
                "plan_file": "",
            }
        )

    def subject(self, kind: str, tensors: Sequence[torch.Tensor]) -> Subject:
        """Another optimizer of the script, found at the same boundary on all ranks."""
        self.subjects.append(Subject(self, kind, tensors))
        return self.subjects[-1]

    def require_running(self) -> None:
        """Tells the script to end, if it was told before and somebody has caught it."""
        if self._status is not None:
            raise ProfileTaken(self._status)

    def stepped(self, subject: Subject) -> None:
        """A step of an optimizer has ended."""
        self.require_running()
        if subject is self.main:
            self._progress(min(subject.steps, self.needed_steps), self.needed_steps)

    def finish(self, agreement: Agreement) -> None:
        """Delivers and ends the script, if the profile that is wanted is there."""
        main = self.main
        if main is None or main.profile is None:
            return  # a larger optimizer is still being measured
        problem = self._deliver(main, main.profile) if agreement.deciding else None
        problem = agreement.share(problem)
        self._status = 1 if problem else 0
        self.require_running()
