"""Metrics as JSON."""

import json

from deft_horovod.runtime.metrics.json_lines import JsonLines


def test_each_line_is_all_that_stats_says(tmp_path):
    path = tmp_path / "metrics.jsonl"
    stats = {"steps": 50, "links": {"horovod": {"bytes": 3}}, "plan": None}
    JsonLines(path).write(stats, 1.23456)
    JsonLines(path).write(stats, 2.0)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [{"time_s": 1.235, **stats}, {"time_s": 2.0, **stats}]
