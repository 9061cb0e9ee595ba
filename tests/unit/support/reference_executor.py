"""The executor as one would explain it: slow, single-threaded, everything recomputed from history.

It keeps only what happened (gradients that came, messages sent and done, releases) and derives the
rest from the plan at every question. The real one has to say the same after every event.
"""

from deft_horovod.base.parameter import WIRE_ITEM_BYTES
from deft_horovod.plan.contents import contents

STAGES = {"forward": 0, "backward": 1}


class ReferenceExecutor:
    def __init__(self, plan):
        self.plan = plan
        self.slots_in = contents(plan.slots, plan.buckets)
        self.step = 0
        self.stage = "forward"
        self.gradients = set()  # (slot, step)
        self.released = set()  # (generation, cycle)
        self.sent = [[] for _ in plan.links]  # (task, cycle), in the order in which they left
        self.done = set()  # (task, cycle)
        self.failed = False

    # --- events ------------------------------------------------------------------------------
    def begin_backward(self):
        self.stage = "backward"
        self._send()

    def slot_ready(self, slot):
        self.gradients.add((slot, self.step))
        self._send()

    def complete(self, link, name):
        self.done.add(next(run for run in self.in_flight(link) if self.name(*run) == name))
        self._send()

    def fail(self, link, name):
        run = next(run for run in self.in_flight(link) if self.name(*run) == name)
        self.sent[link].remove(run)
        self.failed = True

    def end_step(self):
        self.step += 1
        self.stage = "forward"
        self._send()

    def release(self, generation, cycle):
        self.released.add((generation, cycle))

    # --- what follows ------------------------------------------------------------------------
    def steps_of(self, generation, cycle):
        """Absolute: the first and the last step it carries, and the one it is applied at."""
        spec = self.plan.generations[generation]
        shift = cycle * self.plan.period
        return max(0, spec.first_step + shift), spec.last_step + shift, spec.apply_step + shift

    def in_flight(self, link):
        return [run for run in self.sent[link] if run not in self.done]

    def name(self, task, cycle):
        return f"t{task}.{self.buffer(self.plan.tasks[task].generation, cycle)}"

    def pending(self, link):
        return [self.name(*run) for run in self.in_flight(link)]

    def buffer(self, generation, cycle):
        """Generations of a bucket take the buffers in turn, in the order of their steps."""
        bucket = self.plan.generations[generation].bucket
        earlier = [
            run
            for run in self._instances(cycle + 1)
            if self.plan.generations[run[0]].bucket == bucket
            and self.steps_of(*run)[0] < self.steps_of(generation, cycle)[0]
        ]
        return len(earlier) % self.plan.buffers

    def due(self):
        """(generation, bucket, first step, last step, buffer, gated), in the order of the plan."""
        found = []
        for run in sorted(self._instances(self.step + 1)):
            first, last, applied = self.steps_of(*run)
            spec = self.plan.generations[run[0]]
            if applied == self.step and run not in self.released:
                found.append((run[0], spec.bucket, first, last, self.buffer(*run), spec.gated))
        return found

    def is_complete(self, generation, cycle):
        first, last, _ = self.steps_of(generation, cycle)
        slots = self.slots_in[self.plan.generations[generation].bucket]
        return all((s, step) in self.gradients for s in slots for step in range(first, last + 1))

    def is_reduced(self, generation, cycle):
        return all((task, cycle) in self.done for task in self._tasks_of(generation))

    def progress(self, generation, cycle):
        if self.is_reduced(generation, cycle):
            return "reduced"
        if self.failed:
            return "failed"
        if not self.is_complete(generation, cycle):
            return "collecting"
        flying = {run for link in range(len(self.plan.links)) for run in self.in_flight(link)}
        mine = {(task, cycle) for task in self._tasks_of(generation)}
        return "in flight" if mine & flying else "held"

    def blocking(self):
        """What has to be released before the backward of this step can begin."""
        return [
            run
            for run in self._instances(self.step + 1)
            if run not in self.released
            and any(
                self.steps_of(*new)[0] == self.step
                and self._same_place(run, new)
                and self.steps_of(*run)[0] < self.step
                for new in self._instances(self.step + 1)
            )
        ]

    # --- inside ------------------------------------------------------------------------------
    def _instances(self, cycles):
        return [(g, c) for c in range(cycles) for g in range(len(self.plan.generations))]

    def _same_place(self, one, other):
        spec, others = (self.plan.generations[run[0]] for run in (one, other))
        return spec.bucket == others.bucket and self.buffer(*one) == self.buffer(*other)

    def _tasks_of(self, generation):
        return [i for i, task in enumerate(self.plan.tasks) if task.generation == generation]

    def _bytes(self, task):
        bucket = self.plan.buckets[self.plan.generations[self.plan.tasks[task].generation].bucket]
        return (bucket.end - bucket.begin) * WIRE_ITEM_BYTES[self.plan.arenas[bucket.arena].wire]

    def _is_open(self, task, cycle):
        spec = self.plan.tasks[task]
        window = (spec.step + cycle * self.plan.period, STAGES[spec.stage])
        return window <= (self.step, STAGES[self.stage])

    def _may_run(self, task, cycle):
        generation = self.plan.tasks[task].generation
        before = [other for other in self._tasks_of(generation) if other < task]
        return self.is_complete(generation, cycle) and all((t, cycle) in self.done for t in before)

    def _has_credit(self, link, task):
        spec = self.plan.links[link]
        flying = self.in_flight(link)
        if spec.credit_messages and len(flying) >= spec.credit_messages:
            return False
        used = sum(self._bytes(other) for other, _ in flying)
        return not (spec.credit_bytes and flying and used + self._bytes(task) > spec.credit_bytes)

    def _send(self):
        for link, spec in enumerate(self.plan.links):
            tasks = [i for i, task in enumerate(self.plan.tasks) if task.link == link]
            for run in ((task, cycle) for cycle in range(self.step + 1) for task in tasks):
                if run in self.sent[link]:
                    continue
                if self._is_open(*run) and self._may_run(*run) and self._has_credit(link, run[0]):
                    if not self.failed:
                        self.sent[link].append(run)
                elif spec.plan_order:
                    break
