"""A rank that is examined; whole examinations are tested on real ranks."""

import sys

from deft_horovod.doctor.diagnosis import diagnose
from deft_horovod.doctor.machine import Checkup
from deft_horovod.job.doctor_rank import ANSWER, main


def test_where_horovod_cannot_be_loaded_it_says_so(monkeypatch, tmp_path):
    monkeypatch.delenv("HOROVOD_RANK", raising=False)
    monkeypatch.setitem(sys.modules, "deft_horovod.job.examination", None)
    assert main(tmp_path) == 0
    found = Checkup.load(tmp_path / ANSWER)
    assert found.links == ()
    problem = diagnose(found)[0]
    assert (problem.level, problem.subject) == ("problem", "extension")
    assert "deft_horovod.job.examination" in problem.text


def test_only_rank_0_writes(monkeypatch, tmp_path):
    monkeypatch.setenv("HOROVOD_RANK", "1")
    monkeypatch.setitem(sys.modules, "deft_horovod.job.examination", None)
    assert main(tmp_path) == 0
    assert list(tmp_path.iterdir()) == []
