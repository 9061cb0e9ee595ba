"""Which links know how to encode which messages."""

import horovod.torch as stock
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod.plan.formats import rest_bytes
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce.encoded import encodings_of, links_of
from deft_horovod.runtime.reduce.planned import open_link
from tests.unit.plan.test_formats import plan_of


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


def reduction():
    return Reduction(stock.Average, stock.Compression.none, 1.0, False, stock.global_process_set)


@pytest.mark.parametrize(("wire_format", "encodes"), [("f32", False), ("int8", True)])
def test_only_plans_with_formats_need_an_encoded_link(wire_format, encodes):
    plan = plan_of([700, 30], [False, True], [0.5], wire_format)
    encodings = encodings_of(plan, 0, 2)
    assert sorted(encodings) == ([0, 1] if encodes else [])
    opened = {"horovod": open_link(reduction())}
    (link,) = links_of(plan, opened, "unit.encoded", reduction(), encodings)
    assert isinstance(link, native.EncodedLink) == encodes
    assert encodes or link is opened["horovod"]


@st.composite
def large_plans(draw):
    """With messages that have owners and others that have none."""
    sizes = draw(st.lists(st.integers(0, 120_000), min_size=1, max_size=4))
    exact = [draw(st.booleans()) for _ in sizes]
    cuts = draw(st.lists(st.floats(0, 1), max_size=3))
    return plan_of(sizes, exact, cuts, draw(st.sampled_from(["f16", "e4m3", "int8", "int4"])))


@settings(max_examples=60)
@given(large_plans(), st.integers(1, 9))
def test_rests_take_the_memory_that_the_plan_states(plan, ranks):
    taken = [
        [one.rest.nbytes + one.sum_rest.nbytes for one in encodings_of(plan, rank, ranks).values()]
        for rank in range(ranks)
    ]
    assert sum(map(sum, taken)) == rest_bytes(plan, ranks)
    assert ranks > 2 or all(sum(of_rank) == rest_bytes(plan) for of_rank in taken)


@given(st.integers(1, 400_000), st.integers(1, 9), st.sampled_from(["f16", "int8", "int4"]))
def test_the_plan_knows_which_messages_have_owners(elements, ranks, wire_format):
    plan = plan_of([elements], [False], [], wire_format)
    (bucket,) = plan.buckets
    owners = native.encoding_owners(wire_format, bucket.end - bucket.begin, ranks)
    assert rest_bytes(plan, ranks) == 4 * elements * (ranks + (owners > 1))
