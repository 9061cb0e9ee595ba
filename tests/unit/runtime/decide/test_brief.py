"""What follows from the options, the phase of the job and the learning rate."""

from dataclasses import replace

import horovod.torch as stock
import pytest

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.ranks.groups import Groups
from deft_horovod.runtime.ranks.reduction import Reduction


def brief(policy="least_stale", compression=stock.Compression.none, **options):
    reduction = Reduction(stock.Average, compression, 1.0, False, stock.global_process_set)
    return Brief(policies.get(policy), Config(**options), reduction, Groups())


def test_a_phase_can_only_narrow_how_late_updates_may_be():
    free = brief(max_delay=2)
    assert free.limits.max_delay == 2
    assert replace(free, late=False).limits.max_delay == 0
    assert replace(brief(max_delay=0), late=True).limits.max_delay == 0
    assert replace(free, sums=False).limits.max_merge == 1


@pytest.mark.parametrize(("accuracy", "asked"), [("exact", False), ("equal", True)])
def test_formats_are_measured_where_they_may_be_used(accuracy, asked):
    assert bool(brief(accuracy=accuracy).asked_costs.formats) == asked
    compressed = brief(compression=stock.Compression.fp16)
    assert compressed.asked_costs.formats == ()


def test_a_profile_measures_everything():
    profiling = replace(brief("bucket", accuracy="exact"), purpose="profile")
    assert {"f16", "int8", "int4"} <= {*profiling.asked_costs.formats}
    assert profiling.watches_forward


def test_the_policy_corrects_unless_the_user_says_how():
    assert brief(correction="none").correction == "none"
    assert brief().correction == policies.get("least_stale").correction
