"""Metrics as a table."""

import csv

from deft_horovod.runtime.metrics.csv_file import COLUMNS, CsvFile


def test_a_job_that_goes_on_writes_below_what_is_there(tmp_path):
    path = tmp_path / "metrics.csv"
    CsvFile(path).write({"steps": 50, "phase": "settled", "links": {"horovod": {}}}, 1.5)
    CsvFile(path).write({"steps": 100, "plan": None}, 2.0)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["steps"] for row in rows] == ["50", "100"]
    assert rows[0]["time_s"] == "1.500"
    assert rows[0]["phase"] == "settled"
    assert rows[1]["plan"] == ""
    assert set(rows[0]) == set(COLUMNS)
