"""Metrics that TensorBoard reads."""

import importlib.util

import pytest

from deft_horovod.errors import ConfigError
from deft_horovod.runtime.metrics.tensorboard import TensorBoard
from tests.unit.runtime.metrics.test_numbers import STATS


def test_tensorboard_finds_each_number_at_its_step(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = TensorBoard(tmp_path / "board")
    board.write(STATS, 5.0)
    board.write({**STATS, "steps": 250, "exposed_us": 20.0}, 6.0)
    events = EventAccumulator(str(tmp_path / "board")).Reload()
    exposed = events.Scalars("deft/exposed_us")
    assert [(one.step, one.value, one.wall_time) for one in exposed] == [
        (200, 12.5, 5.0),
        (250, 20.0, 6.0),
    ]
    assert "deft/links/bytes/horovod" in events.Tags()["scalars"]


def test_without_the_package_the_error_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="pip install tensorboard"):
        TensorBoard(tmp_path)
