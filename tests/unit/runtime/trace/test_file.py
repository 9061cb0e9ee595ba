"""The file of one rank's trace."""

import json

import pytest

from deft_horovod.errors import ConfigError
from deft_horovod.runtime.trace.file import TraceFile


def test_what_is_written_is_on_the_disk_at_once(tmp_path):
    file = TraceFile(tmp_path / "new" / "folder", 2)
    file.write([{"ph": "M"}, {"ph": "X"}])
    assert file.path.name == "rank.2.json"
    assert json.loads(file.path.read_text().rstrip(",\n") + "]") == [{"ph": "M"}, {"ph": "X"}]


def test_an_old_trace_is_not_touched_unless_it_is_continued(tmp_path):
    TraceFile(tmp_path, 0).write([{"ph": "M"}])
    with pytest.raises(ConfigError, match="already has one"):
        TraceFile(tmp_path, 0)
    TraceFile(tmp_path, 0, may_exist=True).write([{"ph": "X"}])
    text = (tmp_path / "rank.0.json").read_text()
    assert len(json.loads(text.rstrip(",\n") + "]")) == 2


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be written to"):
        TraceFile(tmp_path / "file", 1)
