from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.base.format_bytes import FormatBytes, together

PARTS = st.lists(
    st.tuples(
        st.sampled_from(["f32", "f16", "int8"]),
        st.builds(FormatBytes, st.integers(0, 1000), st.integers(0, 1000)),
    )
)


@given(PARTS)
def test_nothing_is_lost_and_the_largest_comes_first(parts):
    found = together(parts)
    for one, sums in found.items():
        mine = [part for other, part in parts if other == one]
        assert sums.bytes == sum(part.bytes for part in mine)
        assert sums.message_bytes == sum(part.message_bytes for part in mine)
    assert set(found) == {one for one, _ in parts}
    sizes = [sums.bytes for sums in found.values()]
    assert sizes == sorted(sizes, reverse=True)
