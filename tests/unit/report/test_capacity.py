"""A schedule as a page."""

import re

import pytest

from deft_horovod.report.capacity import capacity_page
from tests.unit.support.capacity.answers import capacity_answer
from tests.unit.support.reports import Page


@pytest.mark.parametrize("jobs", [2, 4, 8])
def test_it_is_whole_and_refers_to_nothing(jobs):
    text = capacity_page(capacity_answer(jobs=jobs))
    read = Page(text)
    assert read.open == []
    assert not re.search(r"https?:|//|@import|src=|href=|<script", text)
    assert "With stock Horovod" in read.text
    assert "<b>" not in text.partition("<body")[2]


def test_missed_jobs_are_in_the_title():
    answer = capacity_answer(jobs=8)
    alone = type(answer)("jobs.yaml", answer.stock)
    assert "<title>2 of 8 jobs are missed" in capacity_page(alone)
    assert "With stock Horovod" not in capacity_page(alone)
