import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deft_horovod.solver.least_stale.link_time import make_grid
from deft_horovod.solver.least_stale.message_order import messages_of, sequence
from deft_horovod.solver.least_stale.options import make_options
from deft_horovod.solver.problem import Choice, Item, Limits
from tests.unit.support.problems import example, problems


@settings(max_examples=60)
@given(problems(), st.integers(1, 4), st.booleans(), st.randoms(use_true_random=False))
def test_every_message_leaves_once_and_none_before_what_is_due_earlier(
    problem, period, patient, pick
):
    # Else the end of one backward and the beginning of the next are the same moment, or nearly.
    assume(problem.forward_us + problem.optimizer_us > 1e-3)
    options = make_options(make_grid(problem, period))
    choices = [options.choices[pick.choice(options.of(i))] for i in range(len(problem.items))]
    order = sequence(problem, choices, period, patient=patient)
    expected = messages_of(problem, choices, period)
    key = lambda m: (m.item, m.bucket, m.step)  # noqa: E731
    assert sorted(order, key=key) == sorted(expected, key=key)
    assert order == sequence(problem, choices, period, patient=patient)
    for link in range(problem.links):
        mine = [message for message in order if message.link == link]
        for place, late in enumerate(mine):
            for early in mine[:place]:
                # Whoever stands before was there before, or is due no later.
                due = (early.due_step, early.gate_us is None, early.gate_us or 0.0)
                mine_due = (late.due_step, late.gate_us is None, late.gate_us or 0.0)
                is_overdue = early.step > late.due_step
                assert not is_overdue or due <= mine_due


def leaving(problem, choices, period=1, patient=False):
    return [(m.item, m.step) for m in sequence(problem, choices, period, patient=patient)]


def test_what_is_due_first_leaves_first():
    # At 60 all three wait behind the first: the last one is needed at 0, the second one at 10.
    problem = example(times=(45.0, 1.0, 1.0))
    assert leaving(problem, [Choice(links=(0,), gated=True)] * 3) == [(0, 0), (2, 0), (1, 0)]


def test_the_old_leaves_before_what_is_ready_in_the_next_step():
    problem = example(times=(1.0, 1.0, 70.0), limits=Limits(1, 1))
    choices = [Choice(links=(0,)), Choice(links=(0,)), Choice(links=(0,), delay=1)]
    assert leaving(problem, choices, 2) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


def test_patience_idles_for_what_is_more_urgent():
    # One that has time until the next backward would be on its way when the synchronous one comes.
    late = Item(0.0, None, 1.0, ((30.0,),))
    urgent = Item(20.0, None, 1.0, ((40.0,),))
    problem = example(items=(late, urgent), limits=Limits(1, 1))
    choices = [Choice(links=(0,), delay=1), Choice(links=(0,))]
    assert leaving(problem, choices) == [(0, 0), (1, 0)]
    assert leaving(problem, choices, patient=True) == [(1, 0), (0, 0)]


def test_patience_takes_a_shorter_one_meanwhile():
    items = [Item(0.0, None, 1.0, ((t,),)) for t in (30.0, 10.0)]
    urgent = Item(20.0, None, 1.0, ((40.0,),))
    problem = example(items=(*items, urgent), limits=Limits(1, 1))
    choices = [*[Choice(links=(0,), delay=1)] * 2, Choice(links=(0,))]
    assert leaving(problem, choices, patient=True) == [(1, 0), (2, 0), (0, 0)]


def test_messages_are_due_at_their_gate_or_at_the_end_of_a_backward():
    problem = example(limits=Limits(1, 2))
    choices = [
        Choice(links=(0,), merged=2, end_step=1, delay=1),
        Choice(links=(0,), gated=True),
        Choice(links=(0,)),
    ]
    found = [(m.item, m.step, m.due_step, m.gate_us) for m in messages_of(problem, choices, 2)]
    assert found == [
        (0, 1, 2, None),
        (1, 0, 1, 10.0),
        (1, 1, 2, 10.0),
        (2, 0, 0, None),
        (2, 1, 1, None),
    ]
    assert pytest.approx(sum(m.time_us for m in messages_of(problem, choices, 2))) == 150.0
