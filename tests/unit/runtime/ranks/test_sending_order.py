from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.runtime.ranks.sending_order import SendingOrder


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_all_leave_in_one_order_each_as_soon_as_it_may(order, ready):
    sending, left = SendingOrder(order), []
    for count, index in enumerate(ready, start=1):
        left += sending.ready(index)
        come = set(ready[:count])
        waits = next((i for i in order if i not in come), None)
        assert left == order[: order.index(waits) if waits is not None else len(order)]


def test_one_that_comes_again_leaves_once():
    sending = SendingOrder([1, 0])
    assert sending.ready(0) == sending.ready(0) == []
    assert sending.ready(1) == [1, 0]
    assert sending.ready(1) == []


def test_a_new_step_begins_with_the_first():
    sending = SendingOrder([1, 0])
    sending.ready(1)
    sending.restart()
    assert sending.ready(0) == []
    assert sending.ready(1) == [1, 0]
