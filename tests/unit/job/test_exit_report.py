"""What ranks leave behind."""

import os

from deft_horovod.job.exit_report import ExitReport, progress, tell_progress


def test_nobody_left_one(tmp_path):
    assert ExitReport.found(tmp_path) is None


def test_the_lowest_rank_speaks_for_all(tmp_path):
    ExitReport(0, "").leave(tmp_path, 1)
    ExitReport(0, "all well").leave(tmp_path, 0)
    assert ExitReport.found(tmp_path) == ExitReport(0, "all well")


def test_the_first_that_went_wrong_counts(tmp_path):
    for time_s, (rank, status) in enumerate([(0, 0), (2, 7), (1, 9)]):
        ExitReport(status, f"rank {rank}").leave(tmp_path, rank)
        os.utime(tmp_path / f"rank.{rank}.json", (time_s, time_s))
    assert ExitReport.found(tmp_path) == ExitReport(7, "rank 2")


def test_progress_is_what_was_told_last(tmp_path):
    assert progress(tmp_path) == (0, 0)
    tell_progress(tmp_path, 1, 13)
    tell_progress(tmp_path, 4, 13)
    assert progress(tmp_path) == (4, 13)
    assert [path.name for path in tmp_path.iterdir()] == ["progress"]
