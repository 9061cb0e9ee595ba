"""What is in flight as plain data: written, read back, checked against the model."""

import copy
from dataclasses import replace

import pytest
import torch

from deft_horovod.base.parameter import Parameter
from deft_horovod.errors import DeftError
from deft_horovod.plan import Bucket, Generation, Link, Plan, Task
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.reduce.encoded import encodings_of
from deft_horovod.runtime.reduce.in_flight import InFlight, agreed_members
from deft_horovod.runtime.reduce.rests import Rests
from deft_horovod.solver.messages.layout import lay_out
from tests.unit.plan.test_formats import plan_of

SHAPES = ((3, 4), (5,))


def plan():
    sizes = [torch.Size(shape).numel() for shape in SHAPES]
    parameters = [
        Parameter(f"p{i}", size, "float32", "float32", "cpu") for i, size in enumerate(sizes)
    ]
    layout = lay_out(parameters, range(len(parameters)))
    return Plan(
        policy="late",
        buffers=2,
        links=(Link(name="horovod"),),
        arenas=layout.arenas,
        slots=layout.slots,
        buckets=(Bucket(arena=0, begin=0, end=layout.arenas[0].elements),),
        generations=(Generation(bucket=0, apply_step=1),),
        tasks=(Task(generation=0),),
    )


def in_flight():
    elements = torch.arange(float(plan().arenas[0].elements))
    return InFlight(plan(), 7, 2, ((0, 1, elements),), ((0, 6),), ((6, 2.0),))


def members(shapes=SHAPES, names=("p0", "p1")):
    return [
        NamedParameter(name, torch.nn.Parameter(torch.zeros(shape)))
        for name, shape in zip(names, shapes, strict=True)
    ]


def test_it_survives_a_file(tmp_path):
    torch.save(in_flight().to_state(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    back = InFlight.from_state(state)
    assert (back.plan, back.step, back.size) == (plan(), 7, 2)
    assert (back.void, back.scales) == (((0, 6),), ((6, 2.0),))
    assert torch.equal(back.memory[0][2], in_flight().memory[0][2])


def test_it_finds_its_members_by_name_in_the_plans_order():
    mine = members()
    assert in_flight().members(list(reversed(mine)), 2) == tuple(mine)


@pytest.mark.parametrize(
    ("everyone", "size"),
    [
        (members(), 3),
        (members(names=("p0", "other")), 2),
        (members(shapes=((3, 5), (5,))), 2),
    ],
)
def test_another_job_is_recognised(everyone, size):
    assert in_flight().members(everyone, size) is None


def rounded(rank=1):
    """As a rank has saved it that owns sums."""
    rests = {"values": {"p0": torch.full((3,), 0.25)}, "sums": {"p0": torch.full((2,), 0.5)}}
    return InFlight(plan(), 7, 2, (), (), (), rests, rank)


def test_what_is_left_of_sums_belongs_to_the_rank_that_made_them():
    back = InFlight.from_state(rounded().to_state())
    assert back.rests_on(1) == back.rests
    assert back.rests_on(0) == {"values": back.rests["values"], "sums": {}}


@pytest.mark.parametrize("saver", [0, 2])
def test_all_begin_with_the_file_of_one_rank_and_no_sum_counts_twice(saver):
    ranks, size = 4, 200_000
    encoded = plan_of([size], [False], [], "int8")
    mine = encodings_of(encoded, saver, ranks)[0]
    values = torch.full((size,), 0.5)
    sums = torch.zeros(size)
    sums[mine.sum_rest_begin :][: len(mine.sum_rest)] = 2.0
    saved = {"values": {"p0": values}, "sums": {"p0": sums}}
    loaded = InFlight(encoded, 7, ranks, (), (), (), saved, saver)
    total = torch.zeros(size)  # in the unit of what arrives: an average
    for rank in range(ranks):
        rests = Rests()
        rests.restore(loaded.rests_on(rank))
        encodings = encodings_of(encoded, rank, ranks)
        rests.begin(encoded, encodings, 1 / ranks)
        begin, own = encodings[0].sum_rest_begin, encodings[0].sum_rest
        total += encodings[0].rest / ranks
        total[begin : begin + len(own)] += own
    assert torch.equal(total, values + sums)


def test_what_is_dropped_is_counted():
    rests = Rests()
    assert in_flight().drop(rests) == 1
    assert rests.dropped == 0
    assert rounded().drop(rests) == 0
    assert rests.dropped == 1
    assert rests.to_state() == {"values": {}, "sums": {}, "whole_next": []}


@pytest.mark.parametrize(
    "damage",
    [
        lambda s: s.update(version=2),
        lambda s: s.pop("plan"),
        lambda s: s.update(step="soon"),
        lambda s: s.update(memory=[[0]]),
        lambda s: s.update(plan="{}"),
    ],
)
def test_what_cannot_be_read_says_so(damage):
    state = copy.deepcopy(in_flight().to_state())
    damage(state)
    with pytest.raises(DeftError):
        InFlight.from_state(state)


class Ranks:
    """Another rank that has loaded something too; `step`: of what it has in flight."""

    def __init__(self, step, lacking=False):
        self.step, self.lacking = step, lacking

    def union(self, flags):
        loaded, lacking = flags
        return [True, lacking or self.lacking] if loaded or not self.lacking else [False, True]

    def collect(self, text):
        return [text, text.replace("step 7", f"step {self.step}")]


def test_all_go_on_where_all_have_saved():
    mine = members()
    assert agreed_members(in_flight(), Ranks(7), mine, 2) == tuple(mine)


def test_of_different_steps_all_is_dropped(caplog):
    """A rank may be ahead of one that fails, and have committed once more."""
    with caplog.at_level("WARNING", "deft_horovod"):
        assert agreed_members(in_flight(), Ranks(4), members(), 2) is None
    assert "saved them at different steps (rank 0: step 7 of plan" in caplog.text
    assert "rank 1: step 4 of plan" in caplog.text


def test_where_only_some_sent_the_next_messages_whole_all_is_dropped(caplog):
    whole = replace(in_flight(), rests={"whole_next": ["p0", "p1"]})
    ranks = Ranks(7)
    ranks.collect = lambda text: [text, text.replace(", p1", "")]
    with caplog.at_level("WARNING", "deft_horovod"):
        assert agreed_members(whole, ranks, members(), 2) is None
    assert "next in full precision: p0, p1" in caplog.text
    assert agreed_members(whole, Ranks(7), members(), 2) is not None


def test_what_only_some_have_loaded_is_dropped():
    assert agreed_members(in_flight(), Ranks(7, lacking=True), members(), 2) is None
    assert agreed_members(None, Ranks(7), members(), 2) is None
    assert agreed_members(None, Ranks(7, lacking=True), members(), 2) is None
