"""The profile of one optimizer: from the steps in which it is taken until all is measured anew."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from deft_horovod.profile import LinkProfile, Profile
from deft_horovod.runtime.measure.observer import Observer
from deft_horovod.runtime.measure.profiler import Profiler
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.named_parameters import NamedParameter


class Profiling:
    """At work once it is begun."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        self.profile: Profile | None = None
        self.members: tuple[NamedParameter, ...] = ()  # whose it is
        self.profiler: Profiler | None = None  # while it is taken
        self._inner = inner

    def begin(self, observer: Observer, warmup_steps: int, steps: int) -> None:
        """It is taken in the next steps."""
        self.forget()
        self.members = observer.members
        self.profiler = Profiler(observer, self._inner, warmup_steps, steps)

    def end(self, agreement: Agreement, links: tuple[LinkProfile, ...]) -> Profile:
        """What came of it, on all ranks together."""
        assert self.profiler is not None  # noqa: S101 (it was begun)
        self.profile = self.profiler.profile(agreement, self.members, links)
        self.drop_unfinished()  # it may have ended early
        return self.profile

    def is_of(self, members: Sequence[NamedParameter]) -> bool:
        """Whether there is one, and of just these."""
        same = [id(member) for member in self.members] == [id(member) for member in members]
        return same and self.profile is not None

    def carry_over(self, links: tuple[LinkProfile, ...], size: int) -> None:
        """It holds for so many ranks, over other links."""
        assert self.profile is not None  # noqa: S101 (else there is nothing to carry)
        self.profile = self.profile.model_copy(update={"links": links, "size": size})

    def of(self, members: Sequence[NamedParameter]) -> Profile | None:
        """The part of some members, if there is a profile."""
        if self.profile is None:
            return None
        place = {id(member): i for i, member in enumerate(self.members)}
        return self.profile.select([place[id(member)] for member in members])

    def drop_unfinished(self) -> None:
        """What is being taken is given up."""
        if self.profiler is not None:
            self.profiler.detach()
            self.profiler = None

    def forget(self) -> None:
        """Nothing is known any more."""
        self.drop_unfinished()
        self.profile = None
