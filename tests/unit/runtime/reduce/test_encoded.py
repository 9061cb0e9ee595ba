"""Which links know how to encode which messages."""

import horovod.torch as stock
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deft_horovod.errors import NotSupportedError
from deft_horovod.plan.formats import rest_bytes
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce import encoded as module
from deft_horovod.runtime.reduce.encoded import (
    LinkPath,
    encodings_of,
    links_of,
    require_between_steps,
    whole_of,
)
from deft_horovod.runtime.reduce.planned import open_link
from tests.unit.plan.test_formats import plan_of


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


def reduction():
    return Reduction(stock.Average, stock.Compression.none, 1.0, False, stock.global_process_set)


@pytest.mark.parametrize(
    ("device", "over_torch", "nccl", "encodes"),
    [
        ("cpu", True, True, True),
        ("cuda", False, False, True),
        ("cuda", False, True, True),
        ("cuda", True, False, True),
        ("cuda", True, True, False),
        ("meta", False, False, False),
    ],
)
def test_what_can_be_brought_to_host_memory_can_be_encoded(
    monkeypatch, device, over_torch, nccl, encodes
):
    monkeypatch.setattr(module, "OVER_TORCH", over_torch)
    monkeypatch.setattr(stock, "nccl_built", lambda: nccl)
    assert module.may_encode(torch.device(device)) == encodes


@pytest.mark.parametrize(("wire_format", "encodes"), [("f32", False), ("int8", True)])
def test_only_plans_with_formats_need_an_encoded_link(wire_format, encodes):
    plan = plan_of([700, 30], [False, True], [0.5], wire_format)
    encodings = encodings_of(plan, 0, 2)
    assert sorted(encodings) == ([0, 1] if encodes else [])
    opened = {"horovod": LinkPath(open_link(reduction()))}
    (link,) = links_of(plan, opened, "unit.encoded", reduction(), encodings)
    assert isinstance(link, native.EncodedLink) == encodes
    assert encodes or link is opened["horovod"].link


@pytest.mark.parametrize("plan_order", [True, False])
def test_over_a_mesh_all_of_a_plan_goes_the_same_way_if_any_is_encoded(plan_order):
    plan = plan_of([700, 700, 700], [False] * 3, [0.3, 0.6], "f32", plan_order=plan_order)
    assert len(plan.buckets) > 1
    assert module._exact_on(plan, 0, "p", reduction()) == {}
    first, *others = plan.buckets
    mixed = plan.model_copy(
        update={"buckets": (first.model_copy(update={"format": "int8"}), *others)}
    )
    found = module._exact_on(mixed, 0, "p", reduction())
    names = [f"p.t{index}" for index in range(1, len(plan.buckets))]
    assert set(found) == {name if plan_order else f"{name}.0" for name in names}
    assert all(len(one.rest) == 0 for one in found.values())
    halved = mixed.model_copy(
        update={"arenas": tuple(a.model_copy(update={"wire": "float16"}) for a in plan.arenas)}
    )
    assert module._exact_on(halved, 0, "p", reduction()) == {}
    assert module._exact_on(mixed, 1, "p", reduction()) == {}


@pytest.mark.parametrize("plan_order", [True, False])
def test_what_is_left_travels_once_with_values_that_are_not_rounded(plan_order):
    plan = plan_of([700, 30], [False, True], [0.5], "f32", plan_order=plan_order)
    encodings = whole_of(plan, {"p1"})
    assert list(encodings) == [1]
    encodings[1].rest.fill_(2.0)
    opened = {"horovod": LinkPath(open_link(reduction()))}
    prefix = f"unit.encoded.{plan_order}"
    (link,) = links_of(plan, opened, prefix, reduction(), encodings)
    name = f"{prefix}.t1" if plan_order else f"{prefix}.t1.0"
    elements, rests = encodings[1].elements, len(encodings[1].rest)
    for sent in (rests, 0):
        values = torch.ones(elements)
        assert link.send(name, "all_reduce", values, values).wait(10.0) == ""
        assert int((values == 3.0).sum()) == sent
        assert int((values == 1.0).sum()) == elements - sent


def test_only_values_in_host_memory_that_travel_as_float32_take_rests_along():
    half = plan_of([700, 30], [False, True], [0.5], "f32", wire="float16")
    assert whole_of(half, {"p0", "p1"}) == {}
    assert whole_of(plan_of([700], [False], [], "int8"), {"p0"}) == {}
    assert whole_of(plan_of([700], [False], [], "f32"), set()) == {}


def test_all_ranks_are_between_steps():
    agreement = Agreement(stock.global_process_set, 10.0)
    require_between_steps(agreement, in_step=False)
    with pytest.raises(NotSupportedError, match=r"after step\(\)"):
        require_between_steps(agreement, in_step=True)


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


@given(
    st.integers(1, 400_000),
    st.integers(1, 9),
    st.sampled_from(["f16", "int8", "int4"]),
    st.integers(0, 1 << 20),
)
def test_the_plan_says_which_messages_have_owners(elements, ranks, wire_format, second_stage_bytes):
    plan = plan_of([elements], [False], [], wire_format)
    plan = plan.model_copy(update={"second_stage_bytes": second_stage_bytes})
    found = [encodings_of(plan, rank, ranks)[0] for rank in range(ranks)]
    assert {one.owners for one in found} in ({1}, {ranks})
    owned = ranks > 1 and found[0].owners > 1
    assert rest_bytes(plan, ranks) == 4 * elements * (ranks + owned)
