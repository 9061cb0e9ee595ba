"""Jobs as they are written, and what is wrong with them."""

import pytest

from deft_horovod.capacity.input.entry import load
from deft_horovod.capacity.input.job_entry import kept_job, scheduled_job
from deft_horovod.errors import ConfigError
from tests.unit.support.example import profile

GOOD = {
    "name": "a",
    "model": "vgg16",
    "compute": "520ms",
    "batch": "32",
    "samples": "6_400",
    "deadline": "2h",
}
KEPT = {**GOOD, "throughput": "100"}
for _name in ("samples", "deadline"):
    del KEPT[_name]


def entry(tmp_path, fields):
    path = tmp_path / "job.yaml"
    lines = (f"{name}: {value}" for name, value in fields.items() if value is not None)
    path.write_text("\n".join(lines), encoding="utf-8")
    return load(path)


def test_samples_are_divided_over_ranks(tmp_path):
    job = scheduled_job(entry(tmp_path, GOOD))
    assert [job.steps_on(ranks) for ranks in (1, 2, 3)] == [200, 100, 67]
    assert (job.release_s, job.deadline_s) == (0, 7_200)
    assert job.profile.compute_us == pytest.approx(520_000)


def test_steps_are_the_same_with_any_ranks(tmp_path):
    job = scheduled_job(entry(tmp_path, {**GOOD, "samples": None, "steps": 50}))
    assert job.steps_on(1) == job.steps_on(8) == 50


def test_a_profile_is_found_beside_the_file(tmp_path):
    profile().save(tmp_path / "p.json")
    fields = {**GOOD, "model": None, "compute": None, "profile": "p.json"}
    assert scheduled_job(entry(tmp_path, fields)).profile == profile()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "vgg17"}, "did you mean 'vgg1"),
        ({"model": "zebra"}, "there is no model 'zebra'"),
        ({"model": None}, "needs either profile or model"),
        ({"compute": None}, "needs 'compute'"),
        ({"model": None, "profile": "p.json"}, "a profile says how long"),
        ({"model": None, "compute": None, "profile": "p.json"}, "there is no file"),
        ({"start": "3h"}, "the deadline of job a is not after its start"),
        ({"steps": "5"}, "needs either samples or steps"),
        ({"batch": None}, "needs 'batch'"),
        ({"min_ranks": 4, "max_ranks": 2}, "min_ranks is more than max_ranks"),
        ({"accuracy": "good"}, "not one of exact, equal, fast"),
        ({"throughput": "5"}, "is for `deft-profile consolidate`"),
        ({"dead_line": "5h"}, "did you mean 'deadline'"),
        ({"memory": "much"}, "not a size"),
    ],
)
def test_mistakes_say_what_to_change(tmp_path, change, said):
    with pytest.raises(ConfigError) as raised:
        scheduled_job(entry(tmp_path, {**GOOD, **change}))
    assert said in str(raised.value)
    assert ", line " in str(raised.value)


def test_a_job_that_keeps_a_throughput_has_no_deadline(tmp_path):
    assert kept_job(entry(tmp_path, KEPT)).throughput == 100.0
    with pytest.raises(ConfigError, match="'deadline' is for `deft-profile capacity`"):
        kept_job(entry(tmp_path, {**KEPT, "deadline": "3h"}))
    with pytest.raises(ConfigError, match="needs 'batch'"):
        kept_job(entry(tmp_path, {**KEPT, "batch": None}))


def test_a_file_that_is_no_profile_is_told(tmp_path):
    (tmp_path / "p.json").write_text("{}", encoding="utf-8")
    fields = {**GOOD, "model": None, "compute": None, "profile": "p.json"}
    with pytest.raises(ConfigError, match="the profile of job a cannot be used"):
        scheduled_job(entry(tmp_path, fields))
