"""What of stats() is a number."""

from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.runtime.metrics.numbers import Number, numbers

STATS = {
    "policy": "auto",
    "steps": 200,
    "late": True,
    "plan": None,
    "exposed_us": 12.5,
    "trials_us": {"stock": 900.0, "least_stale": 700.0},
    "links": {"horovod": {"bytes": 10, "messages": 2}},
    "formats": {"int8": {"bytes": 4, "error": 0.01}},
    "accuracy": {"budget": 0.02, "rounding": {"added_noise": {"int8": 0.05}, "vetoed": []}},
}


def test_everything_countable_is_found_under_one_name():
    found = {number.name: number.value for number in numbers(STATS)}
    assert found == {
        "steps": 200.0,
        "late": 1.0,
        "exposed_us": 12.5,
        "trials_us/stock": 900.0,
        "trials_us/least_stale": 700.0,
        "links/bytes/horovod": 10.0,
        "links/messages/horovod": 2.0,
        "formats/bytes/int8": 4.0,
        "formats/error/int8": 0.01,
        "accuracy/budget": 0.02,
        "accuracy/rounding/added_noise/int8": 0.05,
    }


def test_what_belongs_to_a_link_says_so():
    assert Number(("links", "bytes"), 10.0, ("link", "horovod")) in numbers(STATS)


@given(
    st.recursive(
        st.one_of(st.none(), st.text(), st.integers(), st.booleans(), st.lists(st.integers())),
        lambda inside: st.dictionaries(st.text(min_size=1), inside),
    )
)
def test_no_number_is_lost_or_invented(inside):
    def count(value):
        if isinstance(value, dict):
            return sum(map(count, value.values()))
        return isinstance(value, (bool, int, float))

    assert len(numbers({"a": inside})) == count(inside)
