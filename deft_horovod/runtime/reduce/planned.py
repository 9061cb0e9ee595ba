"""The planned way: gradients flow through the C++ session that runs a plan."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple, Protocol

import torch

from deft_horovod.errors import NotSupportedError, explain
from deft_horovod.peers import stock
from deft_horovod.plan import Plan
from deft_horovod.plan.contents import contents
from deft_horovod.plan.formats import is_encoded, message_bytes
from deft_horovod.preserver.rounding import RoundingError
from deft_horovod.profile import LinkCost
from deft_horovod.profile.link_cost import Sample, fit_link
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.measure.gradient_statistics import GradientStatistics
from deft_horovod.runtime.measure.step_clock import StepClock
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.ranks.waits import Waiter
from deft_horovod.runtime.reduce.encoded import LinkPath, encodings_of, factor_of, links_of
from deft_horovod.runtime.reduce.merging import Merging, divide
from deft_horovod.runtime.reduce.rests import Rests

_KEPT_RECORDS: Final = 4096  # as many as the session keeps


class LateCorrection(Protocol):
    """What is done about gradients that are in flight (runtime/correct)."""

    def note_own(self, step: int, gradients: Sequence[torch.Tensor | None]) -> None:
        """What this rank has contributed in the step that ends."""

    def note_due(self, dues: Sequence[native.Due]) -> None:
        """What is in ``p.grad`` now."""

    def updated(self, alive: Sequence[native.Due], step: int) -> None:
        """The updates of the boundary before `step` are done; `alive` is in flight."""

    def lift(self) -> None:
        """The true parameters again."""

    def abandon(self) -> None:
        """As :meth:`close`, but others may have trained since."""

    def close(self) -> None:
        """Nothing is corrected any more."""


@dataclass(frozen=True)
class Route:
    """How the messages of one optimizer travel, whatever the plan."""

    reduction: Reduction
    paths: Mapping[str, LinkPath]  # by the names of links that plans use
    prefix: str  # of message names
    deadline_s: float
    merging: Merging
    correction: str  # a name of `GUESSES`, or "none"


def staged(
    link: native.Link, devices: Iterable[torch.device], *, direct: bool = False
) -> native.Link:
    """The same link for messages on these devices, by way of host memory. `direct`: it reads the
    devices' memory itself, so that is the way of messages in wire formats alone."""
    cuda = [device for device in devices if device.type == "cuda"]
    return native.StagedLink(link, cuda[0].index, direct) if cuda else link


def open_link(reduction: Reduction, devices: Iterable[torch.device] = ()) -> native.Link:
    """The path through Horovod, which scales exactly as it does for its own optimizer.

    A Horovod without NCCL reads host memory alone.
    """
    link = native.HorovodLink(
        process_set_id=reduction.process_set.process_set_id,
        average=reduction.op == stock.Average,
        prescale=reduction.prescale,
        postscale=reduction.postscale,
    )
    return staged(link, devices, direct=stock.nccl_built())


class Sent(NamedTuple):
    """What a link has carried."""

    bytes: int = 0  # as they travel
    messages: int = 0
    busy_us: int = 0


# One run of a generation: its index in the plan, and its first step.
_Run = tuple[int, int]


def _run(due: native.Due) -> _Run:
    return due.generation, due.first_step


def _steps(due: native.Due) -> int:
    return due.last_step - due.first_step + 1


def is_late(plan: Plan) -> bool:
    """Whether anything may be in flight at a boundary, apart from what gates hold."""
    return any(generation.delay > 0 or generation.merged > 1 for generation in plan.generations)


class PlannedReducer:
    """One plan at work on the dense gradients of an optimizer."""

    def __init__(
        self,
        members: Sequence[NamedParameter],
        plan: Plan,
        route: Route,
        clock: StepClock,
        *,
        watch: GradientStatistics | None = None,
        correct: Callable[[PlannedReducer], LateCorrection | None] = lambda _: None,
        sent: tuple[Sent, ...] = (),
        rests: Rests | None = None,
    ) -> None:
        """`watch` sees the gradients, and `correct` makes what is done about late ones. `sent`: in
        the cycles of this plan before. `rests`: of the plans before, those of this one are added.
        """
        self.members = tuple(members)
        self.plan = plan
        self.late = is_late(plan)
        self.route = route
        self._clock = clock
        self._watch = watch
        self._replan_asked = self._replan_asked_next = False
        self.void_runs: set[_Run] = set()
        self._travel_again: set[_Run] = set()  # of these: nothing is lost with them
        self.boundary: list[native.Due] = []  # what was due at the latest one
        self._sent_before = sent or (Sent(),) * len(plan.links)
        self.dropped = 0  # generations that were thrown away
        self._records: deque[native.MessageRecord] = deque(maxlen=_KEPT_RECORDS)
        process_set = route.reduction.process_set
        rounding = encodings_of(plan, process_set.rank(), process_set.size())
        self.rests = Rests() if rests is None else rests
        encodings = self.rests.begin(plan, rounding, factor_of(route.reduction))
        self._encodings = encodings
        self.session = native.Session(
            native.Plan(plan.model_dump(), message_bytes(plan)),
            [member.tensor for member in members],
            links_of(plan, route.paths, route.prefix, route.reduction, encodings),
            route.prefix,
            process_set.rank(),
            process_set.size(),
        )
        self._waiter = Waiter(self.session, [m.name for m in members], route.deadline_s)
        self._correction = correct(self)

    def finish(self, hold_gated: bool) -> list[native.Due]:
        """Closes the step and takes what is due; returns the gated part if it may be held."""
        self.lift()
        self.session.close_step()
        dues = self.session.due()
        for follower in (self._correction, self._watch):
            if follower is not None:
                follower.note_own(self.session.step, [m.tensor.grad for m in self.members])
        if self.late:
            # What is applied at this boundary is decided by the plan: the gradients of this step
            # were packed, and only what is due comes back.
            self._drop_gradients(range(len(self.members)))
        self.boundary = dues
        gated = [due for due in dues if due.gated]
        self.take([due for due in dues if not due.gated] if gated else dues)
        if gated and hold_gated:
            # A local gradient that is already on its way: the next backward must not add to it.
            self._drop_gradients(self.members_of(gated))
        # Gated messages may be planned for the next forward: only now can those leave.
        self.session.end_step()
        if self._correction is not None:
            self._correction.note_due([due for due in dues if not due.gated])
        if hold_gated:
            return gated
        # Other ranks may hold these until the next forward: what they ask for counts then.
        self._replan_asked_next = self._receive(gated)
        return []

    def take(self, dues: Sequence[native.Due]) -> None:
        """Waits for generations and leaves their averages in ``p.grad``."""
        self._replan_asked = self._receive(dues) or self._replan_asked

    def _receive(self, dues: Sequence[native.Due]) -> bool:
        """Returns whether any rank asks for a new plan."""
        if not dues:
            return False
        with self._clock.exposed():
            self._waiter.wait(dues)
        asked = self._install(dues)
        self.session.release(dues)
        return asked

    def sent(self) -> tuple[Sent, ...]:
        """What each link has carried for this plan."""
        return tuple(
            Sent(old.bytes + now.bytes, old.messages + now.messages, old.busy_us + now.busy_us)
            for old, now in zip(self._sent_before, self.session.link_stats(), strict=True)
        )

    @property
    def rest_bytes(self) -> int:
        """Memory of what rounding leaves."""
        at_work = (one.rest.nbytes + one.sum_rest.nbytes for one in self._encodings.values())
        return sum(at_work) + self.rests.kept_bytes

    def rounding_errors(self) -> list[RoundingError]:
        """Of this rank, of each bucket that has travelled in a wire format."""
        plan, members = self.plan, contents(self.plan.slots, self.plan.buckets)
        return [
            RoundingError(
                plan.buckets[bucket].format,
                tuple(plan.slots[i].name for i in members[bucket] if not plan.slots[i].exact),
                encoding.error,
            )
            for bucket, encoding in self._encodings.items()
            if encoding.error >= 0.0
        ]

    def look_at_records(self) -> list[native.MessageRecord]:
        """The messages that have arrived since the last look."""
        new = self.session.take_records()
        self._records.extend(new)
        return new

    def take_records(self) -> list[native.MessageRecord]:
        """Those that have arrived since the last call, whether they were looked at or not."""
        self.look_at_records()
        taken = [*self._records]
        self._records.clear()
        return taken

    def link_cost(self) -> LinkCost | None:
        """What the messages since the last look say of the link; None: too little, as where some
        of them had fewer bytes than their values."""
        records = self.take_records()
        if is_encoded(self.plan):
            return None
        return fit_link([Sample(r.bytes, r.sent_us, r.done_us) for r in records])

    def tensors_by_rate(self, dues: Iterable[native.Due]) -> dict[int, list[torch.Tensor]]:
        """The parameters that have a part in these generations, each once, by how many times the
        learning rate their update has."""
        rate = self.route.merging.rate
        rates = {s: rate(_steps(due)) for due in dues for s in self.session.slots_of(due.bucket)}
        found: dict[int, list[torch.Tensor]] = {}
        for slot in sorted(rates):
            found.setdefault(rates[slot], []).append(self.members[slot].tensor)
        return found

    def take_replan_request(self) -> bool:
        """Whether any rank asked for a new plan in what was taken since the last call."""
        asked = self._replan_asked
        self._replan_asked, self._replan_asked_next = self._replan_asked_next, False
        return asked

    def forget_requests(self) -> None:
        """No rank acts on what was asked for so far: a new plan, messages in full precision."""
        self._replan_asked = self._replan_asked_next = False
        self.rests.withdraw()

    def members_of(self, dues: Iterable[native.Due]) -> set[int]:
        """The parameters that have a part in these generations."""
        return {slot for due in dues for slot in self.session.slots_of(due.bucket)}

    def _install(self, dues: Sequence[native.Due]) -> bool:
        """Returns whether any rank asks for a new plan."""
        valid = [due for due in dues if _run(due) not in self.void_runs]
        runs = {_run(due) for due in dues}
        self.dropped += len((runs & self.void_runs) - self._travel_again)
        self.void_runs -= runs
        asked = self.session.install(valid)
        if self._watch is not None:
            self._show(self._watch, valid)
        if self.route.merging.mean:
            for steps in {_steps(due) for due in valid} - {1}:
                merged = self.members_of(due for due in valid if _steps(due) == steps)
                divide((self.members[slot].tensor for slot in merged), steps)
        return asked

    def _show(self, watch: GradientStatistics, dues: Iterable[native.Due]) -> None:
        """The averages of single steps."""
        pieces: dict[int, Counter[int]] = defaultdict(Counter)
        for due in dues:
            if _steps(due) == 1:
                pieces[due.last_step].update(self.session.slots_of(due.bucket))
        for step in sorted(pieces):
            watch.arrived(step, [m.tensor.grad for m in self.members], pieces[step])

    def _drop_gradients(self, slots: Iterable[int]) -> None:
        for slot in slots:
            gradient = self.members[slot].tensor.grad
            if gradient is not None and not gradient.is_sparse:  # those travel the stock way
                self.members[slot].tensor.grad = None

    # --- between steps -----------------------------------------------------------------------
    def updated(self) -> None:
        """The updates of this boundary are done; what is still in flight can be predicted."""
        if self._correction is not None:
            self._correction.updated(self.session.alive(), self.session.step)

    def lift(self) -> None:
        """Parameters have their true values from now on, not predicted ones."""
        if self._correction is not None:
            self._correction.lift()

    def void(self, dues: Iterable[native.Due], step: int, *, kept: bool = False) -> None:
        """Of these generations, those that hold gradients of this step or later ones are thrown
        away once they arrive. `kept`: the gradients stay in ``p.grad``, and will travel again."""
        runs = {_run(due): due for due in dues if due.last_step >= step}
        self.void_runs |= runs.keys()
        if kept:
            self._travel_again |= {run for run, due in runs.items() if due.first_step == step}

    def runs_that_hold(self, step: int) -> set[_Run]:
        """What began before this step, and takes in its gradients too."""
        generations = self.plan.generations

        def last_step(due: native.Due) -> int:  # that of `due` itself ends with the present
            spec = generations[due.generation]
            return due.apply_step - spec.apply_step + spec.last_step

        return {_run(due) for due in self.session.alive() if last_step(due) >= step}

    def settle(self, limit_s: float = math.inf) -> None:
        """Until everything that may leave by now has arrived, `limit_s` at most. Every rank gets
        there by itself, so this may be called on one rank alone."""
        self._waiter.settle(limit_s)

    def depart(self) -> tuple[list[native.Due], int]:
        """This rank takes no further step: what has arrived by now, and how much never left.

        Horovod lets no rank join that has a message waiting for others, so what has not left by
        now cannot leave any more.
        """
        if len(self.plan.links) > 1:
            raise NotSupportedError(
                explain(
                    "hvd.join() while a second link is in use",
                    rank=stock.rank(),
                    observed=f"links {', '.join(link.name for link in self.plan.links)}",
                    expected="Horovod's link alone: no other can fill in for a rank that has left",
                    action="leave second_interface unset, or give every rank as many steps",
                )
            )
        self.settle()
        alive = self.session.alive()
        arrived = [due for due in alive if self.session.inspect(due).progress == "reduced"]
        return arrived, len(alive) - len(arrived)

    def flush(self) -> list[list[native.Due]]:
        """Ends the cycle: sends all that is left. What is alive, in the order of its boundaries;
        :meth:`take` each. Every rank has to call it at the same boundary."""
        self.session.flush()
        alive = self.session.alive()
        return [list(dues) for _, dues in groupby(alive, key=lambda due: due.apply_step)]

    def abandon(self) -> None:
        """Its engine is gone, and late gradients are never taken: no guess may stay in the model.
        Messages go on, as other ranks may wait for them, and gates apply what they hold."""
        if self._correction is not None:
            self._correction.abandon()

    @property
    def idle(self) -> bool:
        """Whether all that may leave by now has arrived, or nothing will."""
        return self.session.wait_idle(0.0) or self.session.failure() is not None

    def close(self) -> None:
        """Nothing more is sent. What is in flight keeps its own memory."""
        if self._correction is not None:
            self._correction.close()
        self.session.fail("the plan was replaced")
        self.rests.end()
