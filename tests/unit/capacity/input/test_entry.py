"""Entries: mistakes of a file are named by line."""

import pytest

from deft_horovod.capacity.input.entry import load
from deft_horovod.capacity.input.values import count
from deft_horovod.errors import ConfigError


def written(tmp_path, text):
    path = tmp_path / "jobs.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_are_read_where_they_stand(tmp_path):
    whole = load(written(tmp_path, "a: 3\nmany:\n  - b: 1\n  - b: 2\n"))
    assert whole.read("a", count) == 3
    assert whole.read("missing", count, 7) == 7
    assert [one.text("b") for one in whole.entries("many", "one")] == ["1", "2"]
    assert whole.entries("none", "one") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("- a\n", "line 1: the file is not a list of names"),
        ("a: 1\na: 2\n", "line 2: 'a' is there twice"),
        ("a: [\n", "line 2: this is not YAML"),
        ("\n\na: -5\n", "line 3: 'a' of the file: not a whole number"),
        ("a:\n  - 1\n", "line 2: 'a' of the file is not a single value"),
        ("b: 1\n", "line 1: the file needs 'a'"),
    ],
)
def test_mistakes_have_a_line(tmp_path, text, said):
    with pytest.raises(ConfigError) as raised:
        load(written(tmp_path, text)).read("a", count)
    assert said in str(raised.value)


def test_a_name_that_is_nearly_right_is_suggested(tmp_path):
    whole = load(written(tmp_path, "job: 1\n"))
    with pytest.raises(ConfigError, match="did you mean 'jobs'"):
        whole.require_known(("jobs", "own"))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "none.yaml")


def test_a_list_has_to_be_one(tmp_path):
    with pytest.raises(ConfigError, match="line 1: 'a' is not a list"):
        load(written(tmp_path, "a: 1\n")).entries("a", "one")
