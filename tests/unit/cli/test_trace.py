"""deft-profile trace: the files of all ranks become one."""

import json

import pytest

from deft_horovod.base.trace import Line, StepSpan, lines_of
from deft_horovod.cli.trace import merged, summary
from tests.unit.support.example import fails, succeeds


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "run"
    found.mkdir()
    for rank in (0, 1, 10):
        line = Line(rank)
        clock = {"ph": "M", "name": "deft_clock", "pid": rank}
        events = [*line.heads(["horovod"]), clock | {"args": {"offset_us": 0, "error_us": rank}}]
        for step in range(3):
            at = 1e6 * step
            events += StepSpan(step, at, at + 1, at + 2, at + 3, at + 1e6).events(line)
        (found / f"rank.{rank}.json").write_text("[\n" + lines_of(events))
    return found


def test_all_ranks_are_in_one_file(folder, tmp_path):
    path = tmp_path / "trace.json"
    result = succeeds("trace", folder, "-o", path)
    assert "3 ranks, 3 steps, 0 messages" in result.stdout
    assert "clocks agree within 0.01 ms" in " ".join(result.stdout.split())
    document = json.loads(path.read_text())
    assert document["traceEvents"] == merged(folder)
    assert sorted({e["pid"] for e in document["traceEvents"]}) == [0, 1, 10]


def test_what_is_in_it_as_json(folder, tmp_path):
    result = succeeds("trace", folder, "-o", tmp_path / "t.json", "--json")
    found = json.loads(result.stdout)
    assert (found["ranks"], found["steps"], found["seconds"]) == (3, 3, 3.0)


def test_a_rank_that_was_killed_has_left_what_it_had(folder):
    path = folder / "rank.1.json"
    path.write_text(path.read_text()[:-20])
    assert summary(merged(folder)).steps == 3


def test_a_trace_that_is_there_is_kept(folder, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("precious")
    assert "trace.json exists" in fails(2, "trace", folder, "-o", path)
    assert path.read_text() == "precious"
    succeeds("trace", folder, "-o", path, "--force")


@pytest.mark.parametrize("broken", ["[\nnonsense\n[]\n", "[\n{}\n,\n", '[\n"x",\n"y"\n'])
def test_what_is_no_trace_is_told(folder, tmp_path, broken):
    (folder / "rank.0.json").write_text(broken)
    message = fails(1, "trace", folder, "-o", tmp_path / "t.json")
    assert "line 2 of" in message
    assert "is no event of a trace" in message
    assert not (tmp_path / "t.json").exists()


def test_a_folder_without_a_trace(tmp_path):
    assert "there is no trace in the folder" in fails(
        1, "trace", tmp_path, "-o", tmp_path / "t.json"
    )
    assert "does not exist" in fails(2, "trace", tmp_path / "absent")
