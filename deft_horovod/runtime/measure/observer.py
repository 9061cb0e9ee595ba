"""What a training step looks like from the optimizer: which gradients come, when, in which form."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from deft_horovod.profile import LinkCost, Profile
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.measure.forward_watch import ForwardWatch
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.named_parameters import NamedParameter


class Observer:
    """Watches those members of an optimizer that train: backward always, forward if asked to."""

    def __init__(
        self, everyone: Sequence[NamedParameter], passes: int, watch_forward: bool
    ) -> None:
        self.everyone = tuple(everyone)
        self.members = tuple(m for m in self.everyone if m.tensor.requires_grad)
        self._frozen = [m.tensor for m in self.everyone if not m.tensor.requires_grad]
        self._last: native.Collected | None = None
        self.collector = native.Collector(
            [m.tensor for m in self.members], [m.name for m in self.members], passes
        )
        self._watch = ForwardWatch([m.tensor for m in self.members]) if watch_forward else None

    @property
    def roots(self) -> tuple[nn.Module, ...]:
        """The outermost modules that were called."""
        return self._watch.roots if self._watch is not None else ()

    @property
    def owners(self) -> dict[nn.Module, tuple[int, ...]]:
        """The modules that were called, each with those of the members that it owns."""
        return self._watch.owners if self._watch is not None else {}

    @property
    def experienced(self) -> bool:
        """Whether a whole step was seen."""
        return self._last is not None

    @property
    def last(self) -> native.Collected | None:
        """What the step that ended last collected."""
        return self._last

    def end_step(self) -> None:
        """Remembers the step that ends and gets ready for the next."""
        self._last = self.collector.collected()
        self.collector.reset()

    def outdated(self, everyone: Sequence[NamedParameter]) -> bool:
        """Whether other parameters train by now than those that are watched."""
        return (
            everyone is not self.everyone
            or not self.collector.all_train()
            or any(tensor.requires_grad for tensor in self._frozen)
        )

    def sparse(self) -> list[bool]:
        """Which members had a sparse gradient in the step that ended last."""
        seen = set(self._last.sparse) if self._last is not None else set()
        return [i in seen for i in range(len(self.members))]

    def unplannable(self, planned: Sequence[NamedParameter]) -> list[NamedParameter]:
        """Sparse gradients of members that were dense so far, which no plan can carry."""
        carried = {id(m) for m in planned}
        sparse = zip(self.members, self.sparse(), strict=True)
        return [m for m, is_sparse in sparse if is_sparse and id(m) in carried]

    def newly_training(
        self, everyone: Sequence[NamedParameter], agreement: Agreement
    ) -> list[NamedParameter]:
        """Members that train only by now, with a gradient on any rank; all ranks ask together."""
        known = {id(m.tensor) for m in self.members}
        new = [m for m in everyone if m.tensor.requires_grad and id(m.tensor) not in known]
        present = agreement.union([m.tensor.grad is not None for m in new])
        return [m for m, is_present in zip(new, present, strict=True) if is_present]

    def gates(self, members: Sequence[NamedParameter]) -> list[nn.Module | None]:
        """The module before whose call each of these members has to be updated."""
        if self._watch is None:
            return [None] * len(members)
        found = {id(m): gate for m, gate in zip(self.members, self._watch.gates, strict=True)}
        return [found.get(id(member)) for member in members]

    def profile(self, members: Sequence[NamedParameter], link: LinkCost | None) -> Profile:
        """The step that has just ended, as planning sees it; indices are those of `members`."""
        collected = self._last
        if collected is None:
            unseen = {"first_use_us": (None,) * len(members), "links": Profile.link_of(link)}
            return Profile.assumed(len(members)).model_copy(update=unseen)
        mine = {id(member): i for i, member in enumerate(members)}
        came = [mine.get(id(self.members[i])) for i in collected.order]
        order = [i for i in came if i is not None]
        late = [i for i in range(len(members)) if i not in set(order)]
        ready_us = [collected.backward_us] * len(members)
        first_use: list[float | None] = [None] * len(members)
        uses = self._watch.first_use_us if self._watch is not None else [None] * len(self.members)
        for member, ready, use in zip(self.members, collected.ready_us, uses, strict=True):
            index = mine.get(id(member))
            if index is not None:
                ready_us[index] = ready if ready >= 0 else collected.backward_us
                first_use[index] = use
        return Profile(
            ready_order=(*order, *late),
            ready_us=tuple(ready_us),
            first_use_us=tuple(first_use),
            forward_us=self._watch.forward_us if self._watch is not None else 0.0,
            backward_us=collected.backward_us,
            links=Profile.link_of(link),
        )

    def send_to(self, session: native.Session | None, carried: Sequence[NamedParameter]) -> None:
        """Gradients of these members go into the session from now on, in its order."""
        slot_of = {id(member): slot for slot, member in enumerate(carried)}
        slots = [slot_of.get(id(member), -1) for member in self.members] if session else []
        self.collector.set_sink(session, slots)

    def stop_watching(self) -> None:
        """Forward is known by now; its hooks cost time."""
        if self._watch is not None:
            self._watch.stop()

    def detach(self) -> None:
        """Removes all hooks."""
        self.stop_watching()
        self.collector.detach()
