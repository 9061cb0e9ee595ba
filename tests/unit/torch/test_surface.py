"""What scripts for our optimizer find on Horovod's."""

import torch

from deft_horovod.torch.surface import with_our_surface


class Made(torch.optim.SGD):
    """Stands for the class that Horovod makes."""


def test_a_script_for_ours_runs_and_nothing_happens():
    parameter = torch.nn.Parameter(torch.ones(2))
    made = with_our_surface(Made([parameter], lr=0.5))
    parameter.grad = torch.ones(2)
    with made as entered:
        assert entered is made
        made.step()
        made.flush()
    assert parameter.tolist() == [0.5, 0.5]
    assert made.stats() == {"policy": "none"}
    assert made.plan is made.profile is None
