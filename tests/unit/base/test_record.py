import json
from typing import ClassVar, Literal

import pytest

from deft_horovod.base.record import Count, Flag, Record
from deft_horovod.errors import PlanError


class Sample(Record):
    size: Count = 0
    flag: Flag = False
    names: tuple[str, ...] = ()


def test_canonical_json_and_its_hash_are_fixed():
    sample = Sample(size=3, names=("b", "a"))
    assert sample.to_json() == '{"flag":false,"names":["b","a"],"size":3}'
    assert sample.hash() == "85355a1658bffb88cf889d339f9e7da559011f3ac303c351c122fde4feea3e54"
    assert Sample.from_json('{ "size": 3, "names": ["b", "a"] }').hash() == sample.hash()


def test_saved_records_come_back(tmp_path):
    sample = Sample(size=2**40, flag=True)
    sample.save(tmp_path / "sample.json")
    assert Sample.load(tmp_path / "sample.json") == sample


def test_records_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        Sample().size = 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"size": -1}, "field 'size'"),
        ({"size": "3"}, "field 'size'"),
        ({"size": True}, "field 'size'"),
        ({"size": 2**63}, "field 'size'"),
        ({"flag": 1}, "field 'flag'"),
        ({"names": (1,)}, r"field 'names\.0'"),
        ({"colour": "red"}, "field 'colour'"),
    ],
)
def test_a_bad_field_is_named(fields, message):
    with pytest.raises(PlanError, match=f"sample is not well formed: {message}") as caught:
        Sample(**fields)
    assert "observed:" in str(caught.value)
    assert "action:" in str(caught.value)


class Versioned(Record):
    readable: ClassVar[tuple[int, ...]] = (1,)

    version: Literal[3] = 3
    size: Count
    names: tuple[str, ...] = ()


def test_an_older_version_may_be_readable():
    assert Versioned.from_json('{"version":1,"size":4}') == Versioned(size=4)


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"version": 2, "size": 1}, ["another version", "version 2", "version 3", "make the"]),
        ({"version": 4, "size": 1, "new": 0}, ["another version", "version 4"]),
        ({"version": "x", "size": 1}, ["another version", "version 'x'"]),
        ({"colour": "red", "version": 2}, ["not a versioned", "the fields colour, version"]),
        ({}, ["not a versioned", "(none)", "at least the fields size"]),
        ({"size": -1}, ["not well formed: field 'size'"]),
    ],
)
def test_another_version_and_foreign_json_are_told_apart(fields, parts):
    with pytest.raises(PlanError) as caught:
        Versioned.from_json(json.dumps(fields))
    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "file {path}: the text of a versioned is not JSON"),
        (b"[]", "file {path}: the text of a versioned is JSON of the wrong kind"),
        (b'{"size":1,"version":2}', "file {path}: this versioned has the format of another"),
        (b"\x80\x02", "the file {path} is not a versioned: it is not text"),
        (None, "the versioned in file {path} cannot be read"),
    ],
)
def test_an_error_names_the_file(tmp_path, content, message):
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PlanError) as caught:
        Versioned.load(path)
    assert str(caught.value).startswith(message.format(path=path))


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "3"])
def test_text_that_is_no_object_is_refused(text):
    with pytest.raises(PlanError, match="the text of a sample is"):
        Sample.from_json(text)
