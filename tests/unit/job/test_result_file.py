"""Results are written whole or not at all."""

import click
import pytest

from deft_horovod.job.result_file import write


def test_what_cannot_be_written_is_told_and_leaves_nothing_half(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "inside").touch()
    with pytest.raises(click.ClickException, match="could not be written"):
        write(path, "content")
    assert (path / "inside").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_bytes_are_written_as_they_are(tmp_path):
    write(tmp_path / "picture", b"\x00\x01")
    assert [entry.name for entry in tmp_path.iterdir()] == ["picture"]
    assert (tmp_path / "picture").read_bytes() == b"\x00\x01"
