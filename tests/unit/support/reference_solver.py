"""The solver as one would explain it: every combination of choices, each one played through.

For tiny problems: one link, one bucket for each item. A fluid link serves what is due first and may
interrupt it; compute stands still where something due has not arrived. Shares no code with the
solver.
"""

from itertools import product

from deft_horovod.base.wire_format import error_of

EXACT = "f32"


def choices(period, max_delay, max_merge, formats, *, gateable):
    """(merged, end_step, delay, gated, format): whatever a plan may say. What is late or merged is
    not rounded too."""
    for choice in _exact_choices(period, max_delay, max_merge, gateable=gateable):
        yield (*choice, EXACT)
        if staleness(choice) == 0:
            for one in formats:
                yield (*choice, one)


def _exact_choices(period, max_delay, max_merge, *, gateable):
    for merged in range(1, max_merge + 1):
        if period % merged:
            continue
        for end_step in range(merged):
            last = period - merged + end_step  # the last generation of the period
            for delay in range(max_delay + 1):
                # Applied in the next period's first step at the latest; see Options.
                if last + delay <= period:
                    yield merged, end_step, delay, False
            if gateable:
                yield merged, end_step, 0, True


def staleness(choice):
    merged, _, delay, *_ = choice
    return delay + (merged - 1) / 2


def harm(choice):
    return staleness(choice) + error_of(choice[-1])


def stall(problem, period, chosen):
    """How long compute stands still in a period of the steady state."""
    before = None
    loop = _Fluid(problem, period, chosen)
    for _ in range(_CYCLES):
        stood_still = loop.cycle()
        now = loop.backlog()
        is_steady = before is not None and len(now) == len(before)
        if is_steady and all(abs(a - b) < 1e-9 for a, b in zip(now, before, strict=True)):
            return stood_still
        before = now
    raise AssertionError("the backlog of a link never becomes steady")


def optimum(problem, period, tolerance_us):
    """The least stall of a period, and all (stall, harm) there are."""
    ways = [
        list(
            choices(
                period,
                problem.limits.max_delay,
                problem.limits.max_merge,
                item.formats,
                gateable=item.need_us is not None,
            )
        )
        for item in problem.items
    ]
    found = []
    for chosen in product(*ways):
        harms = sum(i.weight * harm(c) for i, c in zip(problem.items, chosen, strict=True))
        found.append((stall(problem, period, chosen), harms))
    least = min(exposed for exposed, _ in found)
    return least, found, max(least, tolerance_us)


_CYCLES = 2000


class _Fluid:
    def __init__(self, problem, period, chosen):
        self.problem, self.period, self.chosen = problem, period, chosen
        self.step = 0
        self.now = self.shift = 0.0  # shift: what compute has stood still so far
        self.waiting = []  # [due, left, (item, step of its last gradient)]

    def cycle(self):
        before = self.shift
        for _ in range(self.period):
            self._step()
        return self.shift - before

    def backlog(self):
        """What waits at the end of a period, and for how long it may."""
        begins = self.step * self.problem.step_us
        return [x for due, left in sorted(self.waiting) for x in (due - begins, left)]

    def _step(self):
        problem = self.problem
        begins = self.step * problem.step_us
        gates = sorted({item.need_us for item in problem.items if item.need_us is not None})
        for gate in gates:
            self._compute_until(begins + gate)
        backward = begins + problem.forward_us
        for index in sorted(range(len(problem.items)), key=lambda i: problem.items[i].ready_us):
            merged, end_step, delay, gated, wire_format = self.chosen[index]
            if self.step % merged != end_step:
                continue
            item = problem.items[index]
            self._compute_until(backward + item.ready_us)
            ends = problem.forward_us + problem.backward_us
            due = (self.step + delay) * problem.step_us + ends
            if gated:
                due = (self.step + 1) * problem.step_us + item.need_us
            time = item.times_in(wire_format)[0][0] / problem.margin
            self.waiting.append([due, time])
        self._compute_until(backward + problem.backward_us)
        self.step += 1
        self._compute_until(self.step * problem.step_us)

    def _compute_until(self, at):
        """At this moment of compute everything due must have arrived."""
        self._serve(at + self.shift - self.now)
        late = sum(left for due, left in self.waiting if due <= at + 1e-9)
        self._serve(late)
        self.shift += late

    def _serve(self, time):
        self.now += time
        self.waiting.sort()
        while self.waiting and time > 0.0:
            served = min(time, self.waiting[0][1])
            self.waiting[0][1] -= served
            time -= served
            if self.waiting[0][1] <= 1e-12:
                self.waiting.pop(0)
