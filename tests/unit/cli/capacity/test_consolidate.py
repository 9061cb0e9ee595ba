"""deft-profile consolidate."""

import json

import pytest

from tests.unit.support.example import fails, saved, succeeds

YAML = """
jobs:
  - {name: a, profile: profile.json, batch: 8, throughput: 60, max_ranks: 4}
  - {name: b, profile: profile.json, batch: 8, throughput: 30, max_ranks: 4}
own:
  - {name: lab, count: 3, ranks: 3, memory: 8GB, link: 2gbit, inner_link: 40gbit}
"""


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved(tmp_path)
    path = tmp_path / "keep.yaml"
    path.write_text(YAML, encoding="utf-8")
    return path


def test_jobs_that_share_a_machine_are_told(jobs):
    told = succeeds("consolidate", jobs, "--stock").stdout
    assert "lab 1" in told
    assert "and fewer cannot do" in told
    assert "with stock Horovod" in told


def test_json_and_page(jobs):
    data = json.loads(succeeds("consolidate", jobs, "--json", "--html", "c.html").stdout)
    assert data["ours"]["machines"] == data["ours"]["bound"]
    assert data["stock"] is None
    assert "Consolidation: keep.yaml" in (jobs.parent / "c.html").read_text(encoding="utf-8")


def test_a_throughput_out_of_reach_says_what_is(jobs):
    jobs.write_text(YAML.replace("throughput: 60", "throughput: 6000"), encoding="utf-8")
    assert "fast enough on no machine" in fails(1, "consolidate", jobs)
