"""How many ranks are looked at, and where they are."""

from pathlib import Path

from deft_horovod.capacity.answer.ranks import Seats, looked_at, room
from deft_horovod.capacity.input.capacity_file import read_schedule

YAML = """
jobs:
  - {name: a, model: vgg16, compute: 1s, steps: 9, deadline: 9h, memory: 3GB, max_ranks: 8}
own:
  - {name: wide, count: 4, ranks: 2, memory: 8GB, link: 10gbit}
  - {name: tight, count: 4, ranks: 4, memory: 8GB, link: 10gbit}
"""


def read(tmp_path: Path):
    path = tmp_path / "jobs.yaml"
    path.write_text(YAML, encoding="utf-8")
    return read_schedule(path)


def test_bounds_small_numbers_and_powers_of_two():
    assert looked_at(1, 11) == [1, 2, 3, 4, 8, 11]
    assert looked_at(6, 20) == [6, 8, 16, 20]
    assert looked_at(3, 2) == []


def test_one_machine_as_far_as_memory_allows_then_whole_ones(tmp_path):
    file = read(tmp_path)
    job, (wide, tight) = file.jobs[0], file.machines
    assert (room(job, wide), room(job, tight)) == (2, 2)
    seats = Seats()
    on_wide = [(seat.ranks, seat.machines) for seat in seats.of(job, wide)]
    assert on_wide == [(1, 1), (2, 1), (4, 2), (6, 3), (8, 4)]
    # All ranks of a tight machine need more memory than it has.
    assert [(seat.ranks, seat.machines) for seat in seats.of(job, tight)] == [(1, 1), (2, 1)]
    assert [seat.ranks for seat in seats.together(job, wide)] == [1, 2]
    assert [seat.ranks for seat in seats.spread(job, tight)] == [2, 3, 4, 8]


def test_jobs_that_are_alike_are_simulated_once(tmp_path):
    job = read(tmp_path).jobs[0]
    seats = Seats()
    assert seats.paces(job) is seats.paces(job)
