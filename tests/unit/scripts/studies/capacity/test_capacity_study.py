"""The study of capacity: instances are the same again, and the page says what was measured."""

import json

from deft_horovod.capacity.problem.rules import broken_rules
from deft_horovod.capacity.schedule.hybrid import hybrid
from scripts.studies.capacity.instances import applications, bags, kinds
from scripts.studies.capacity.measure import packings, schedules, whole_use
from scripts.studies.capacity.page import write_page
from scripts.studies.capacity.run import FOLDER, PARTS, main
from scripts.studies.capacity.scale import wide
from tests.places import ROOT


def test_a_seed_makes_one_instance():
    assert bags(3, 12, kinds(3, 2, 4), 2.0) == bags(3, 12, kinds(3, 2, 4), 2.0)
    assert bags(3, 12, kinds(3, 2, 4), 2.0) != bags(4, 12, kinds(4, 2, 4), 2.0)
    assert applications(3, 6) == applications(3, 6)


def test_every_method_is_measured():
    demand = bags(1, 8, kinds(1, 1, 4), 2.0)
    found = schedules(demand, 0.5)
    assert found["exact"]["rent"] <= found["hybrid"]["rent"]
    assert 0.0 < whole_use(hybrid(demand)) <= 1.0
    packed = packings(applications(1, 5), 0.5)
    assert packed["exact"]["machines"] <= packed["ready"]["machines"]


def test_wide_jobs_keep_the_rules():
    demand = wide(bags(1, 20, kinds(1, 3, 4), 2.0, 1.1), 1)
    assert broken_rules(hybrid(demand)) == []
    assert any(way.ranks > 1 for work in demand.works for way in work.ways)


def test_the_page_is_made_of_the_data(tmp_path):
    for path in FOLDER.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    write_page(tmp_path)
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == (
        ROOT / "docs" / "studies" / "capacity" / "README.md"
    ).read_text(encoding="utf-8")
    assert (tmp_path / "rent.png").stat().st_size > 0


def test_every_instance_is_there():
    for name in PARTS:
        rows = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
        assert [row["seed"] for row in rows] == list(range(100))
        methods = ("hybrid", "first_fit") if name != "consolidation" else ()
        for row in rows:
            assert all(row["exact"]["rent"] <= row[method]["rent"] for method in methods)


def test_what_there_is_not_is_told(capsys):
    assert main(["everything"]) == 2
    assert "usage:" in capsys.readouterr().err
