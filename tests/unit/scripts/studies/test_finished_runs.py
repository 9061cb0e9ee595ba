"""What is finished is found again."""

import json
from dataclasses import dataclass

from scripts.studies.finished_runs import finished, keep, kept, path_of


@dataclass(frozen=True)
class Run:
    task: str
    seed: int
    workers: int = 4


RUN, OTHER = Run("large text", 1), Run("large text", 1, workers=2)


def test_a_file_has_a_name_that_is_read_and_tells_all_fields_apart(tmp_path):
    path, other = path_of(RUN, tmp_path, "task", "seed"), path_of(OTHER, tmp_path, "task", "seed")
    assert path != other
    assert path.name.startswith("large-text-1-")
    assert path == path_of(Run("large text", 1), tmp_path, "task", "seed")


def test_what_is_finished_is_what_has_a_file(tmp_path):
    paths = {run: path_of(run, tmp_path, "task") for run in (RUN, OTHER)}
    paths[OTHER].write_text(json.dumps({"losses": [2.0]}))
    assert finished(paths) == {OTHER: {"losses": [2.0]}}


def test_outcomes_come_back_as_they_were_kept(tmp_path):
    outcomes = {RUN: {"losses": [1.25, float("inf")]}, OTHER: {"losses": [], "late": 0.5}}
    keep(outcomes, tmp_path / "some.json")
    assert kept(tmp_path / "some.json", Run) == outcomes
    assert kept(tmp_path / "none.json", Run) == {}


def test_a_field_that_is_newer_than_the_data_has_its_default(tmp_path):
    (tmp_path / "old.json").write_text('[{"task": "text", "seed": 3, "losses": [1.0]}]')
    assert kept(tmp_path / "old.json", Run) == {Run("text", 3): {"losses": [1.0]}}
