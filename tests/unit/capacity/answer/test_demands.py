"""From a file to numbers."""

import pytest

from deft_horovod.capacity.answer.demands import demand_of, tenants_of
from deft_horovod.capacity.answer.ranks import Seats
from deft_horovod.capacity.input.capacity_file import read_consolidation, read_schedule
from deft_horovod.errors import ConfigError

OWN = "own:\n  - {name: lab, count: 2, ranks: 2, memory: 8GB, link: 2gbit}\n"
JOB = "{name: a, model: vgg16, compute: 500ms, batch: 32"


def made(tmp_path, job, read, convert, *, stock=False):
    path = tmp_path / "jobs.yaml"
    path.write_text(f"jobs:\n  - {JOB}, {job}}}\n{OWN}", encoding="utf-8")
    heard = []
    found = convert(read(path), Seats(), stock=stock, told=heard.append)
    assert heard == ["a"]
    return found


def test_more_ranks_are_a_way_only_where_they_are_faster(tmp_path):
    asked = made(tmp_path, "samples: 64_000, deadline: 9h", read_schedule, demand_of)
    ways = asked.works[0].ways
    assert ways[0].duration_s == 1_000
    durations_s = [way.duration_s for way in ways]
    assert durations_s == sorted(set(durations_s), reverse=True)
    # VGG-16 on 2 Gbit/s is slower on two ranks, or nearly so; steps do not get fewer at all.
    alike = made(tmp_path, "steps: 2_000, deadline: 9h", read_schedule, demand_of)
    assert [way.ranks for way in alike.works[0].ways] == [1]


def test_stock_is_never_faster(tmp_path):
    job = "samples: 64_000, deadline: 9h, accuracy: fast"
    ours, stock = (
        made(tmp_path, job, read_schedule, demand_of, stock=stock) for stock in (False, True)
    )
    fastest = [min(way.duration_s for way in one.works[0].ways) for one in (ours, stock)]
    assert fastest[0] <= fastest[1]


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("steps: 5, deadline: 9h, memory: 9GB", "a rank needs more memory than any has"),
        ("steps: 5, deadline: 9h, min_ranks: 5", "it needs more ranks than a kind"),
    ],
)
def test_a_job_that_fits_nowhere_says_what_to_change(tmp_path, job, said):
    with pytest.raises(ConfigError) as raised:
        made(tmp_path, job, read_schedule, demand_of)
    assert said in str(raised.value)
    assert "line 2" in str(raised.value)
    assert "lower m" in str(raised.value)


def test_the_fewest_ranks_that_are_fast_enough_are_offered(tmp_path):
    asked = made(tmp_path, "throughput: 60", read_consolidation, tenants_of)
    offers = asked.tenants[0].offers
    assert [(one.ranks, one.together) for one in offers if one.together] == [(1, True)]


def test_a_throughput_that_is_out_of_reach_says_what_is(tmp_path):
    with pytest.raises(ConfigError) as raised:
        made(tmp_path, "throughput: 5_000.0", read_consolidation, tenants_of)
    assert "fast enough on no machine" in str(raised.value)
    assert "at most" in str(raised.value)
