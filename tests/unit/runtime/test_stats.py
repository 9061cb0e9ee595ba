from deft_horovod.preserver.rounding import RoundingError
from deft_horovod.runtime.measure.step_clock import StepClock
from deft_horovod.runtime.stats import step_stats
from tests.unit.plan.test_formats import plan_of


class FakeLink:
    def __init__(self, name, size_bytes, messages, busy_us):
        self.name = name
        self.bytes = size_bytes
        self.messages = messages
        self.busy_us = busy_us


class FakePlanned:
    def __init__(self, links):
        self.plan = self
        self.session = self
        self.links = links
        self.buffer_bytes = 512
        self.rest_bytes = 256
        self.late = True
        self.route = self
        self.correction = "local"
        self.prediction = None
        self.buckets = self.arenas = self.slots = ()

    def hash(self):
        return "abc"

    def sent(self):
        return self.links

    def rounding_errors(self):
        return [RoundingError("int8", ("weight",), error) for error in (0.01, 0.2, 0.005)]


def test_totals_are_the_sum_of_the_links():
    links = [FakeLink("fast", 100, 2, 7), FakeLink("slow", 30, 1, 5)]
    found = step_stats(StepClock(), FakePlanned(links))
    assert found["links"]["fast"] == {"bytes": 100, "messages": 2, "communication_us": 7}
    assert (found["bytes"], found["messages"], found["communication_us"]) == (130, 3, 12)
    assert (found["plan"], found["buffer_bytes"], found["rest_bytes"]) == ("abc", 512, 256)
    assert (found["late"], found["correction"], found["prediction"]) == (True, "local", None)


def test_formats_say_what_they_save():
    planned = FakePlanned([FakeLink("horovod", 1064, 1, 5)])
    planned.plan = plan_of([1000, 3], [False, True], [], "int8")
    found = step_stats(StepClock(), planned)
    sizes = {"bytes": 4048, "message_bytes": found["formats"]["int8"]["message_bytes"]}
    assert found["formats"] == {"int8": {**sizes, "error": 0.01}}
    assert sizes["message_bytes"] < 1100


def test_without_a_plan_nothing_was_sent():
    found = step_stats(StepClock(), None)
    assert (found["bytes"], found["messages"], found["links"]) == (0, 0, {})
    assert (found["plan"], found["buffer_bytes"], found["rest_bytes"]) == (None, 0, 0)
    assert (found["late"], found["correction"], found["prediction"]) == (False, "none", None)


def test_the_keys_do_not_depend_on_what_runs():
    planned = step_stats(StepClock(), FakePlanned([]))
    assert planned.keys() == step_stats(StepClock(), None).keys()
