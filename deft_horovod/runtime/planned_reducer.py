"""The planned way: gradients flow through the C++ session that runs a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import horovod.torch as stock

from deft_horovod.plan import Plan
from deft_horovod.runtime.channel import Channel
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.members import Member
from deft_horovod.runtime.stats import StepClock
from deft_horovod.runtime.waits import Waiter

if TYPE_CHECKING:
    from collections.abc import Iterable


def open_link(channel: Channel) -> native.HorovodLink:
    """The path through Horovod, which scales exactly as it does for its own optimizer."""
    return native.HorovodLink(
        process_set_id=channel.process_set.process_set_id,
        average=channel.op == stock.Average,
        prescale=channel.prescale,
        postscale=channel.postscale,
    )


class PlannedReducer:
    """One plan at work on the dense gradients of an optimizer."""

    def __init__(
        self,
        members: Sequence[Member],
        plan: Plan,
        channel: Channel,
        prefix: str,
        deadline_s: float,
        clock: StepClock,
    ) -> None:
        self.members = tuple(members)
        self.plan = plan
        self._clock = clock
        self._attention = False
        process_set = channel.process_set
        self.session = native.Session(
            native.Plan(plan.model_dump()),
            [member.tensor for member in members],
            [open_link(channel) for _ in plan.links],
            prefix,
            process_set.rank(),
            process_set.size(),
        )
        self._waiter = Waiter(self.session, [m.name for m in members], deadline_s)

    def finish(self, hold_gated: bool) -> list[native.Due]:
        """Closes the step and takes what is due; returns the gated part if it may be held."""
        self.session.close_step()
        dues = self.session.due()
        gated = [due for due in dues if due.gated]
        self.take([due for due in dues if not due.gated] if gated else dues)
        if gated and hold_gated:
            self._drop_gradients(gated)
        # Gated messages may be planned for the next forward: only now can those leave.
        self.session.end_step()
        if hold_gated:
            return gated
        self.take(gated)
        return []

    def take(self, dues: Sequence[native.Due]) -> None:
        """Waits for generations and leaves their averages in ``p.grad``."""
        if not dues:
            return
        with self._clock.exposed():
            self._waiter.wait(dues)
        self.session.install(dues)
        self._attention = self._attention or self.session.attention(dues)
        self.session.release(dues)

    def take_attention(self) -> bool:
        """Whether any rank asked for a new plan in what was taken since the last call."""
        asked, self._attention = self._attention, False
        return asked

    def members_of(self, dues: Iterable[native.Due]) -> set[int]:
        """The parameters that have a part in these generations."""
        return {slot for due in dues for slot in self.session.slots_of(due.bucket)}

    def _drop_gradients(self, held: Sequence[native.Due]) -> None:
        # What the user sees as p.grad until the gate opens is a local gradient that is already on
        # its way; leaving it there would let the next backward add to it.
        for slot in self.members_of(held):
            self.members[slot].tensor.grad = None

    def close(self) -> None:
        """Nothing more is sent. What is in flight keeps its own memory."""
        self.session.fail("the plan was replaced")
