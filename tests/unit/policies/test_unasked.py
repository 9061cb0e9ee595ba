"""Whoever asks for something gets that."""

import pytest
import torch

from deft_horovod.config import Config
from deft_horovod.policies.limits import limits
from deft_horovod.policies.unasked import in_time_unless_asked, with_unasked_accuracy


class Derived(torch.optim.AdamW):
    pass


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.AdamW, torch.optim.Muon])
def test_auto_may_round_for_classes_that_were_tested(optimizer):
    meant = with_unasked_accuracy(Config(), optimizer)
    assert meant == Config(accuracy="equal")


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adamax, Derived])
def test_of_other_optimizers_nothing_is_known(optimizer):
    assert with_unasked_accuracy(Config(), optimizer) == Config()


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD])
@pytest.mark.parametrize("calm", [False, True])
def test_without_flush_nothing_is_late(optimizer, calm):
    meant = with_unasked_accuracy(Config(), optimizer)
    kept = limits("auto", in_time_unless_asked(Config(), meant), calm=calm)
    assert (kept.max_delay, kept.max_merge) == (0, 1)
    assert kept.formats == limits("auto", meant).formats


@pytest.mark.parametrize("max_merge", [1, 2])
@pytest.mark.parametrize("calm", [False, True])
def test_sums_do_not_make_it_late(max_merge, calm):
    asked = Config(max_merge=max_merge)
    meant = with_unasked_accuracy(asked, torch.optim.AdamW)
    assert meant == asked
    kept = limits("auto", in_time_unless_asked(asked, meant), calm=calm)
    assert (kept.max_delay, kept.max_merge) == (0, max_merge)


@pytest.mark.parametrize(
    "asked",
    [
        *({"accuracy": word} for word in ("exact", "equal", "fast")),
        *({"policy": policy} for policy in ("least_stale", "deft", "bucket", "stock")),
        {"max_delay": 0},
        {"plan_file": "plan.json"},
    ],
)
def test_what_was_asked_for_stays(asked):
    config = Config.model_validate(asked)
    meant = with_unasked_accuracy(config, torch.optim.AdamW)
    assert in_time_unless_asked(config, meant) == meant == config
