"""How late updates come, in words."""

import pytest

from deft_horovod.plan.staleness_text import bytes_of_step, staleness_text
from tests.unit.support.jobs import PLAN


@pytest.mark.parametrize(
    ("delay", "merged", "text"),
    [
        (0, 1, "every update in time"),
        (1, 1, "100 % of the bytes 1 step late"),
        (1, 4, "100 % of the bytes 1 step late, 4 steps at once"),
    ],
)
def test_delay_and_merging_are_told(delay, merged, text):
    generations = tuple(
        g.model_copy(update={"last_step": merged - 1, "apply_step": merged - 1 + delay})
        for g in PLAN.generations
    )
    plan = PLAN.model_copy(update={"generations": generations, "period": merged, "buffers": 2})
    assert staleness_text(plan) == text
    assert sum(bytes_of_step(plan).values()) == sum(bytes_of_step(PLAN).values())
