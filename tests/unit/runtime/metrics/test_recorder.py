"""When metrics are written."""

import logging

import pytest

from deft_horovod.errors import ConfigError
from deft_horovod.runtime.metrics.csv_file import CsvFile
from deft_horovod.runtime.metrics.json_lines import JsonLines
from deft_horovod.runtime.metrics.prometheus import PrometheusFile
from deft_horovod.runtime.metrics.recorder import Recorder, recorder_to
from deft_horovod.runtime.metrics.tensorboard import TensorBoard


class Kept:
    def __init__(self, fails_at=None):
        self.steps = []
        self.fails_at = fails_at

    def write(self, stats, time_s):
        assert time_s > 1e9
        if len(self.steps) == self.fails_at:
            raise OSError(28, "No space left on device")
        self.steps.append(stats["steps"])


def test_every_so_many_steps_are_written_and_others_cost_nothing(tmp_path):
    kept, asked = Kept(), []

    def stats(step):
        asked.append(step)
        return {"steps": step}

    recorder = Recorder(kept, tmp_path, 3)
    for step in range(1, 11):
        recorder.step(lambda step=step: stats(step))
    assert kept.steps == asked == [3, 6, 9]


def test_a_full_disk_does_not_stop_the_training_and_is_said_once(tmp_path, caplog):
    recorder = Recorder(Kept(fails_at=1), tmp_path / "m.csv", 1)
    with caplog.at_level(logging.WARNING, "deft_horovod"):
        for step in range(5):
            recorder.step(lambda step=step: {"steps": step})
    assert [record.getMessage() for record in caplog.records] == [
        f"deft_horovod: no more metrics go to {tmp_path / 'm.csv'}: No space left on device"
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", CsvFile),
        ("a.jsonl", JsonLines),
        ("a.prom", PrometheusFile),
        ("board", TensorBoard),
    ],
)
def test_the_name_says_what_is_written(tmp_path, name, kind):
    place = tmp_path / "new" / name
    assert isinstance(recorder_to(str(place), 1, 0)._sink, kind)
    assert recorder_to(str(place), 1, 0)._place == place


def test_another_optimizer_has_a_file_of_its_own(tmp_path):
    assert recorder_to(str(tmp_path / "a.csv"), 1, 2)._place == tmp_path / "a-2.csv"
    assert recorder_to(str(tmp_path / "board"), 1, 1)._place == tmp_path / "board-1"


def test_a_place_that_cannot_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="metrics cannot be written") as refused:
        recorder_to(str(tmp_path / "file" / "a.csv"), 1, 0)
    assert "DEFT_METRICS" in str(refused.value)
