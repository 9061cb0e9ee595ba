"""The picture of a schedule."""

from deft_horovod.capacity.problem.schedule import Schedule
from deft_horovod.picture.figure import picture
from deft_horovod.picture.gantt import draw
from tests.unit.support.capacity.answers import capacity_answer


def test_every_machine_has_a_row_and_every_job_its_name():
    schedule = capacity_answer().ours.found.schedule
    (axes,) = draw(schedule).axes
    assert len(axes.get_yticks()) == len(schedule.by_unit)
    assert sorted(text.get_text() for text in axes.texts) == ["<b>", "b", "c", "d"]
    assert picture(draw(schedule), "png").startswith(b"\x89PNG")


def test_nothing_can_be_drawn():
    demand = capacity_answer().ours.demand
    assert picture(draw(Schedule(demand, ())), "svg")
