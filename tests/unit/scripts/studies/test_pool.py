"""Runs in processes of their own."""

import json

from scripts.studies.pool import train_all, write


def test_every_outcome_is_kept_and_said(tmp_path, capsys):
    train_all({number: tmp_path / f"{number}.json" for number in (3, 5)}, str, 2, _said)
    assert [json.loads((tmp_path / f"{n}.json").read_text()) for n in (3, 5)] == ["3", "5"]
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("[1/2, ")
    assert last.startswith("[2/2, 0 min left] ")
    assert {first[-6:], last[-6:]} == {"3 is 3", "5 is 5"}


def test_nothing_half_written_is_left(tmp_path):
    write(tmp_path / "one.json", [1.5])
    assert [path.name for path in tmp_path.iterdir()] == ["one.json"]
    assert json.loads((tmp_path / "one.json").read_text()) == [1.5]


def _said(number, outcome):
    return f"{number} is {outcome}"
