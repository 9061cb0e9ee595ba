import functools

import horovod.torch as stock
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.runtime.ranks import agreement as module
from deft_horovod.runtime.ranks.agreement import (
    Agreement,
    canonical,
    device_of_zeros,
    first_difference,
)

LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text("ab", max_size=2))
FACTS = st.dictionaries(
    st.sampled_from("uvwxyz"),
    st.recursive(
        LEAVES,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("uvw"), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@given(FACTS)
def test_equal_facts_do_not_differ(facts):
    assert first_difference(facts, dict(reversed(facts.items()))) is None
    assert canonical(facts) == canonical(dict(reversed(facts.items())))


@given(FACTS, FACTS)
def test_a_difference_is_found_exactly_when_the_texts_differ(mine, theirs):
    found = first_difference(mine, theirs)
    assert (found is None) == (canonical(mine) == canonical(theirs))
    if found is not None:
        assert canonical({"": found[1]}) != canonical({"": found[2]})


@given(FACTS, FACTS)
def test_both_sides_find_the_same_place(mine, theirs):
    here, there = first_difference(mine, theirs), first_difference(theirs, mine)
    if here is not None:
        assert (here[0], here[2], here[1]) == there


def test_the_first_one_is_named_with_its_path_and_both_sides():
    mine = {"b": [{"shape": [3, 4]}, {"shape": [5]}], "c": 1}
    theirs = {"b": [{"shape": [3, 4]}, {"shape": [6]}], "c": 2}
    assert first_difference(mine, theirs) == ("b.1.shape.0", 5, 6)


def test_lists_of_other_lengths_differ_where_they_do_before_the_end():
    assert first_difference({"p": [1, 2]}, {"p": [1, 3, 4]}) == ("p.1", 2, 3)
    assert first_difference({"p": [1, 2]}, {"p": [1, 2, 4]}) == ("p.length", 2, 3)


def test_a_missing_fact_is_a_difference():
    assert first_difference({"a": 1}, {"a": 1, "b": 2}) == ("b", "(absent)", 2)
    assert first_difference({}, {"a": None}) == ("a", "(absent)", None)


def test_what_is_told_comes_back_and_a_name_is_always_that_of_one_shape(monkeypatch):
    stock.init()
    shapes = {}

    def watched(send, tensor, *arguments, **options):
        assert shapes.setdefault(options["name"], tensor.shape) == tensor.shape
        return send(tensor, *arguments, **options)

    for call in ("allgather_async", "broadcast_async_", "allreduce_async_"):
        monkeypatch.setattr(stock, call, functools.partial(watched, getattr(stock, call)))
    agreement = Agreement(stock.global_process_set, 10.0)
    for length in (0, 1, 63, 64, 65, 1000, 5000, 2, 900):
        text = "\u00e4" * length
        assert agreement.collect(text) == [text]
        assert agreement.share(text) == text
        numbers = [float(n) for n in range(length % 7)]
        assert agreement.gather(numbers) == [numbers]
        assert agreement.union([n > 2 for n in numbers]) == [n > 2 for n in numbers]
    agreement.require_equal({"a": [1]})
    assert len(shapes) < 40


@pytest.mark.parametrize("nccl", [False, True])
@pytest.mark.parametrize("over_torch", [False, True])
def test_zeros_lie_where_nccl_finds_them(monkeypatch, nccl, over_torch):
    monkeypatch.setattr(stock, "nccl_built", lambda: nccl)
    monkeypatch.setattr(module, "OVER_TORCH", over_torch)
    host, device = torch.device("cpu"), torch.device("cuda", 1)
    assert device_of_zeros([host]) == host
    assert device_of_zeros([host, device]) == (device if nccl and not over_torch else host)
