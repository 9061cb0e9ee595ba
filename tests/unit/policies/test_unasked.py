"""Whoever asks for something gets that."""

from functools import partial

import pytest
import torch

from deft_horovod.config import Config
from deft_horovod.policies.limits import limits
from deft_horovod.policies.unasked import formats_that_harm, with_unasked_accuracy


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


def test_sums_say_enough_about_accuracy():
    assert meant_for(torch.optim.AdamW, Config(max_merge=2)) == Config(max_merge=2)


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD])
def test_nothing_is_late_unasked(optimizer):
    meant = limits("auto", meant_for(optimizer))
    assert (meant.max_delay, meant.max_merge) == (0, 1)


def test_a_budget_for_late_updates_says_nothing_about_rounding():
    asked = Config(accuracy_budget=0.01)
    assert meant_for(torch.optim.AdamW, asked) == asked.model_copy(update={"accuracy": "equal"})


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
    assert meant == config


def test_four_bits_harm_muon_alone():
    assert formats_that_harm(torch.optim.Muon) == ("int4",)
    for optimizer in (torch.optim.SGD, torch.optim.AdamW, Derived):
        assert formats_that_harm(optimizer) == ()
