"""Whole files."""

import pytest

from deft_horovod.capacity.input.capacity_file import read_consolidation, read_schedule
from deft_horovod.errors import ConfigError
from tests.places import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "capacity"
JOB = "  - {name: a, model: vgg16, compute: 1s, steps: 3, deadline: 1h}\n"
MACHINE = "  - {name: lab, ranks: 2, memory: 8GB}\n"


def test_examples_are_read():
    file = read_schedule(EXAMPLES / "jobs.yaml")
    assert [job.name for job in file.jobs] == ["language", "photographs", "products"]
    assert [machine.kind.name for machine in file.machines] == ["lab", "small", "large"]
    kept = read_consolidation(EXAMPLES / "keep.yaml")
    assert all(job.throughput for job in kept.jobs)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"jobs:\n{JOB}", "there are no machines"),
        (f"own:\n{MACHINE}", "there are no jobs"),
        (f"jobs:\n{JOB}{JOB}own:\n{MACHINE}", "line 3: there are two of the name 'a'"),
        (f"jobs:\n{JOB}own:\n{MACHINE}{MACHINE}", "line 5: there are two of the name 'lab'"),
        (f"jobs:\n{JOB}owned:\n{MACHINE}", "line 3: the file has no 'owned'"),
    ],
)
def test_what_is_missing_or_twice_is_told(tmp_path, text, said):
    path = tmp_path / "jobs.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_schedule(path)
    assert said in str(raised.value)
