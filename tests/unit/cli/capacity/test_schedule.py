"""deft-profile capacity."""

import json

import pytest

from tests.unit.support.example import fails, saved, succeeds

YAML = """
jobs:
  - {name: a, profile: profile.json, batch: 8, samples: 100_000, deadline: 1h, max_ranks: 4}
  - {name: b, profile: profile.json, batch: 8, samples: 200_000, deadline: 1h, max_ranks: 4}
own:
  - {name: lab, count: 1, ranks: 2, memory: 8GB, link: 2gbit}
rent:
  - {name: cloud, ranks: 2, memory: 8GB, link: 2gbit, limit: LIMIT, price_per_hour: 1.2}
"""


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved(tmp_path)
    path = tmp_path / "jobs.yaml"
    path.write_text(YAML.replace("LIMIT", "2"), encoding="utf-8")
    return path


def test_jobs_rent_and_what_stock_costs_are_told(jobs):
    told = succeeds("capacity", jobs, "--stock").stdout
    for word in ("job", "lab 1", "cloud 1", "rent ", "with stock Horovod", "our plans save"):
        assert word in told


def test_json_picture_and_page(jobs):
    words = ("--stock", "--json", "--plot", "g.svg", "--html", "g.html")
    result = succeeds("capacity", jobs, *words)
    data = json.loads(result.stdout)
    assert [row["job"] for row in data["ours"]["jobs"]] == ["a", "b"]
    assert data["saved"] == data["stock"]["rent"] - data["ours"]["rent"]
    folder = jobs.parent
    assert "<svg" in (folder / "g.svg").read_text(encoding="utf-8")
    assert "With stock Horovod" in (folder / "g.html").read_text(encoding="utf-8")
    assert "exists" in fails(2, "capacity", jobs, "--html", "g.html")


def test_what_cannot_be_met_says_what_would_help(jobs):
    text = YAML.replace("LIMIT", "1").replace("200_000", "900_000")
    jobs.write_text(text, encoding="utf-8")
    told = " ".join(succeeds("capacity", jobs).stdout.split())
    assert "b is missed; it would not be with a deadline of" in told


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("profile: profile.json", "model: none, compute: 1s"), "there is no model 'none'"),
        (("deadline: 1h", "deadline: 1h, start: 2h"), "is not after its start"),
        (("price_per_hour: 1.2", "price_per_hour: -1"), "a price is 0 or more"),
        (("max_ranks: 4", "memory: 9GB"), "fits on no machine"),
    ],
)
def test_mistakes_say_what_to_change(jobs, change, said):
    jobs.write_text(YAML.replace("LIMIT", "1").replace(*change), encoding="utf-8")
    message = fails(1, "capacity", jobs)
    assert said in message
    assert "line " in message
