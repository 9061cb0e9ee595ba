"""``deft-profile doctor`` on two real ranks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.parallel.ended import LIMIT_S, Ended

pytestmark = pytest.mark.timeout(LIMIT_S + 20)


def test_two_ranks_are_examined_and_their_link_is_measured(tmp_path: Path) -> None:
    ended = Ended(tmp_path, "doctor", "-np", "2", "--json", "-o", "doctor.json")
    assert ended.left == ["doctor.json"], ended.output
    data = json.loads((tmp_path / "doctor.json").read_text())
    machines = data["checkup"]["machines"]
    assert [machine["rank"] for machine in machines] == [0, 1]
    assert machines[0]["transports"] == ["Gloo"]
    assert machines[0]["ranks_on_host"] == 2
    (link,) = data["checkup"]["links"]
    assert len(link["samples"]) >= 8
    by_subject = {finding["subject"]: finding for finding in data["findings"]}
    assert {"versions", "extension", "cores", "interface", "link horovod"} <= by_subject.keys()
    assert by_subject["versions"]["level"] == by_subject["extension"]["level"] == "ok"
    problems = [f for f in data["findings"] if f["level"] == "problem"]
    assert ended.status == (1 if problems else 0)


def test_under_horovodrun_rank_0_speaks_for_all(tmp_path: Path) -> None:
    launcher = (str(Path(sys.executable).with_name("horovodrun")), "-np", "2")
    ended = Ended(tmp_path, "doctor", launcher=launcher)
    assert ended.said("fits Horovod and torch; Horovod has Gloo") == 1
    assert not ended.said("Traceback")


def test_one_rank_has_no_link_to_measure(tmp_path: Path) -> None:
    ended = Ended(tmp_path, "doctor")
    assert ended.said("fits Horovod and torch") == 1
    assert not ended.said("link horovod")
