"""Metrics in Prometheus' text format."""

import re

from deft_horovod.runtime.metrics.prometheus import PrometheusFile, exposition
from tests.unit.runtime.metrics.test_numbers import STATS

LABEL = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-z_:][a-z0-9_:]*)\{{({LABEL}(?:,{LABEL})*)?\}} (\S+)")


def samples(text):
    found = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            assert line.split()[3] == "gauge"
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        found[name, labels] = float(value)
    return found


def test_every_line_is_one_that_prometheus_can_read_and_units_are_its_own():
    found = samples(exposition({**STATS, "running": 'a "b"\n\\c'}, 1, 12.0))
    assert found["deft_exposed_seconds", 'optimizer="1"'] == 12.5e-6
    assert found["deft_link_bytes", 'optimizer="1",link="horovod"'] == 10.0
    assert found["deft_trials_seconds", 'optimizer="1",candidate="stock"'] == 9e-4
    assert found["deft_written_time_seconds", 'optimizer="1"'] == 12.0
    assert [labels for name, labels in found if name == "deft_info"] == [
        r'optimizer="1",policy="auto",running="a \"b\"\n\\c"'
    ]


def test_samples_of_one_name_stand_together_below_their_type():
    lines = exposition(STATS, 0, 1.0).splitlines()
    named = [line.split()[2] if line[0] == "#" else re.split("[{ ]", line)[0] for line in lines]
    runs = [name for i, name in enumerate(named) if i == 0 or named[i - 1] != name]
    assert len(runs) == len(set(runs))


def test_the_file_is_always_whole(tmp_path):
    path = tmp_path / "deft.prom"
    file = PrometheusFile(path, 0)
    assert not path.exists()
    for steps in (50, 100):
        file.write({"steps": steps}, 1.0)
        assert samples(path.read_text())["deft_steps", 'optimizer="0"'] == steps
    assert [one.name for one in tmp_path.iterdir()] == ["deft.prom"]
