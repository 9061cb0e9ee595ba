"""deft-profile doctor: what it starts, what it shows, how it ends."""

import json
import os

import pytest

from deft_horovod.cli import doctor as module
from deft_horovod.job.doctor_rank import ANSWER
from tests.unit.doctor.test_diagnosis import checkup
from tests.unit.support.example import fails, succeeds


class Jobs:
    """In the place of real ones."""

    def __init__(self):
        self.commands = []
        self.answer = checkup()
        self.status = 0

    def __call__(self, command, folder, *, quiet_stdout=False):
        self.commands.append(list(command))
        if self.answer is not None:
            self.answer.save(folder / ANSWER)
        return self.status


@pytest.fixture
def jobs(monkeypatch):
    for variable in list(os.environ):
        if variable.startswith(("DEFT_", "HOROVOD_", "OMPI_", "PMI_")):
            monkeypatch.delenv(variable)
    jobs = Jobs()
    monkeypatch.setattr(module, "run_job", jobs)
    return jobs


def test_ranks_are_started_by_horovodrun_and_the_findings_shown(jobs):
    result = succeeds("doctor", "-np", "2")
    (command,) = jobs.commands
    assert command[0].endswith("horovodrun")
    assert command[1:3] == ["-np", "2"]
    assert "ok" in result.stdout
    assert "traffic goes over eth0" in result.stdout


def test_a_problem_is_the_status_and_its_advice_is_shown(jobs):
    jobs.answer = checkup({}, {"environment": {"DEFT_POLICY": "x"}})
    message = module.rendered(module.diagnose(jobs.answer))
    assert message.row_count > 5
    fails(1, "doctor", "-np", "2")


def test_json_has_findings_and_facts(jobs):
    data = json.loads(succeeds("doctor", "--json").stdout)
    assert data["findings"][0]["level"] == "ok"
    assert len(data["checkup"]["machines"]) == 2


def test_ranks_that_leave_nothing(jobs):
    jobs.answer, jobs.status = None, 1
    assert "the examination ended with status 1" in fails(1, "doctor", "-np", "2")
    jobs.status = 130
    assert "interrupted" in fails(130, "doctor", "-np", "2")


def test_under_horovodrun_no_ranks_are_started(jobs, monkeypatch):
    monkeypatch.setenv("HOROVOD_RANK", "0")
    assert "leave out -np" in fails(2, "doctor", "-np", "2")
    monkeypatch.setattr(module, "checkup", checkup)
    assert "traffic goes over" in succeeds("doctor").stdout
    monkeypatch.setenv("HOROVOD_RANK", "1")
    assert succeeds("doctor").stdout == ""
    assert jobs.commands == []
