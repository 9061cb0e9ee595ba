"""Training under a plan, told tick by tick: nothing is derived, everything is tried at every tick.

What may leave is asked of the reference executor. Times have to be whole numbers.
"""

import math
from collections import deque

from deft_horovod.plan.contents import contents
from tests.unit.support.reference_executor import ReferenceExecutor


class NaiveTraining:
    def __init__(self, plan, profile, task_us):
        self.plan, self.profile, self.task_us = plan, profile, task_us
        self.executor = ReferenceExecutor(plan)
        self.inside = contents(plan.slots, plan.buckets)
        self.queues = [deque() for _ in plan.links]  # (task, cycle), the first one is carried
        self.left_us = [0 for _ in plan.links]  # of the one that is carried
        self.clock_us = 0
        self.stages = []  # of each step: forward, backward, its end, boundary, end of update
        self.leaves_us, self.arrives_us, self.applied_us = {}, {}, {}

    def run(self, steps):
        loop = self._loop(steps)
        condition = next(loop)
        while condition is not None:
            self._land()
            while condition is not None and condition():
                condition = next(loop, None)
                self._land()
            self.clock_us += 1
            self.left_us = [left - 1 for left in self.left_us]
        return self

    def _take_off(self):
        for link, queue in enumerate(self.queues):
            for run in self.executor.in_flight(link):
                if run not in queue:
                    if not queue:
                        self.left_us[link] = self.task_us[run[0]]
                    queue.append(run)
                    self.leaves_us[run] = self.clock_us

    def _land(self):
        self._take_off()
        landed = True
        while landed:  # a message that takes no time may follow another one
            landed = False
            for link, queue in enumerate(self.queues):
                if queue and self.left_us[link] <= 0:
                    run = queue.popleft()
                    self.arrives_us[run] = self.clock_us
                    if queue:
                        self.left_us[link] = self.task_us[queue[0][0]]
                    self.executor.complete(link, self.executor.name(*run))
                    self._take_off()
                    landed = True

    def _loop(self, steps):
        profile, executor = self.profile, self.executor
        ready = [min(time, profile.backward_us) for time in profile.ready_us]
        held = []
        for step in range(steps):
            begin = forward = self.clock_us
            for need in sorted({self._need(run[0]) for run in held}):
                yield self._at(forward + need)
                asked = self.clock_us
                opened = [run for run in held if self._need(run[0]) == need]
                yield self._all_reduced(opened)
                forward += self.clock_us - asked
                self._apply(opened)
            yield self._at(forward + profile.forward_us)
            backward = self.clock_us
            for time, slot in sorted((ready[i], i) for i in range(len(ready))):
                yield self._at(backward + time)
                executor.begin_backward()
                executor.slot_ready(slot)
            yield self._at(backward + profile.backward_us)
            ended = self.clock_us
            dues = [(d[0], self._cycle(d[0], step), d[5]) for d in executor.due()]
            held = [(generation, cycle) for generation, cycle, gated in dues if gated]
            now = [(generation, cycle) for generation, cycle, gated in dues if not gated]
            yield self._all_reduced(now)
            boundary = self.clock_us
            self._apply(now)
            executor.end_step()
            yield self._at(boundary + profile.optimizer_us)
            self.stages.append((begin, backward, ended, boundary, self.clock_us))

    def _at(self, time_us):
        return lambda: self.clock_us >= time_us

    def _cycle(self, generation, step):
        return (step - self.plan.generations[generation].apply_step) // self.plan.period

    def _need(self, generation):
        """The first use of one of its parameters."""
        forward_us = self.profile.forward_us
        slots = self.inside[self.plan.generations[generation].bucket]
        uses = [self.profile.first_use_us[slot] for slot in slots]
        return min(forward_us, *(math.inf if use is None else use for use in uses))

    def _all_reduced(self, runs):
        return lambda: all(self.executor.is_reduced(*run) for run in runs)

    def _apply(self, runs):
        for run in runs:
            self.executor.release(*run)
            self.applied_us[run] = self.clock_us
