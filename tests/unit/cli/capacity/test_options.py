"""What the subcommands about machines share."""

import click
import pytest

from deft_horovod.cli.capacity.options import JobsFile, simulating, table


def test_a_file_has_to_be_there(tmp_path):
    with pytest.raises(click.BadParameter, match="there is no file"):
        JobsFile().convert(tmp_path / "none.yaml", None, None)
    path = tmp_path / "jobs.yaml"
    path.touch()
    assert JobsFile().convert(str(path), None, None) == path


def test_nothing_is_said_where_nobody_looks(capsys):
    with simulating() as told:
        told("a job")
    assert capsys.readouterr().err == ""


def test_words_stand_left_and_numbers_right():
    columns = table(("a",), ("b",)).columns
    assert [column.justify for column in columns] == ["left", "right"]
