"""Rates follow a schedule, in all groups of all optimizers."""

import torch

from scripts.studies.rates import Rates


def test_every_group_keeps_its_share_of_the_rate_that_it_began_with():
    first, second, third = (torch.nn.Parameter(torch.zeros(1)) for _ in range(3))
    groups = [{"params": [first], "lr": 0.1}, {"params": [second], "lr": 0.4}]
    optimizers = [torch.optim.SGD(groups), torch.optim.AdamW([third], lr=0.02)]
    rates = Rates(optimizers)
    for share in (0.5, 0.25, 1.0):
        rates.set_to(share)
        found = [group["lr"] for one in optimizers for group in one.param_groups]
        assert found == [0.1 * share, 0.4 * share, 0.02 * share]
