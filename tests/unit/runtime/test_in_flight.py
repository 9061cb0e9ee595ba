"""What is in flight as plain data: written, read back, checked against the model."""

import copy

import pytest
import torch

from deft_horovod.errors import DeftError
from deft_horovod.parameter import Parameter
from deft_horovod.plan import Bucket, Generation, Link, Plan, Task
from deft_horovod.runtime.in_flight import InFlight
from deft_horovod.runtime.members import Member
from deft_horovod.solver.layout import lay_out

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
        Member(name, torch.nn.Parameter(torch.zeros(shape)))
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
