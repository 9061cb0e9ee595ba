"""Whoever asks for something gets that."""

from functools import partial

import pytest
import torch

from deft_horovod.config import Config
from deft_horovod.policies.limits import limits
from deft_horovod.policies.unasked import in_time_unless_asked, with_unasked_accuracy


class Derived(torch.optim.AdamW):
    pass


class DerivedSGD(torch.optim.SGD):
    pass


def meant_for(optimizer, config=None, **options):
    """With two groups of parameters, the second of which has these options."""
    groups = [{"params": [torch.nn.Parameter(torch.zeros(2, 2))], **of} for of in ({}, options)]
    made = optimizer(groups, lr=0.1)
    return with_unasked_accuracy(config or Config(), type(made), made.param_groups)


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.AdamW, torch.optim.Muon])
def test_auto_may_round_for_classes_that_were_tested(optimizer):
    assert meant_for(optimizer) == Config(accuracy="equal")


@pytest.mark.parametrize("optimizer", [torch.optim.Adamax, Derived])
def test_of_other_optimizers_nothing_is_known(optimizer):
    assert meant_for(optimizer) == Config()


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_was_tested_with_momentum(nesterov):
    with_momentum = partial(torch.optim.SGD, momentum=0.9, nesterov=nesterov)
    assert meant_for(with_momentum) == Config(accuracy="equal")
    assert meant_for(with_momentum, momentum=0.0, nesterov=False) == Config()
    assert meant_for(torch.optim.SGD) == meant_for(partial(DerivedSGD, momentum=0.9)) == Config()


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD])
@pytest.mark.parametrize("calm", [False, True])
def test_without_flush_nothing_is_late(optimizer, calm):
    meant = meant_for(optimizer)
    kept = limits("auto", in_time_unless_asked(Config(), meant), calm=calm)
    assert (kept.max_delay, kept.max_merge) == (0, 1)
    assert kept.formats == limits("auto", meant).formats


@pytest.mark.parametrize("max_merge", [1, 2])
@pytest.mark.parametrize("calm", [False, True])
def test_sums_do_not_make_it_late(max_merge, calm):
    asked = Config(max_merge=max_merge)
    meant = meant_for(torch.optim.AdamW, asked)
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
    meant = meant_for(torch.optim.AdamW, config)
    assert in_time_unless_asked(config, meant) == meant == config
