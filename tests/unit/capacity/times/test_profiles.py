"""Profiles of models that are known by name."""

import pytest

from deft_horovod.capacity.times.profiles import profile_of
from deft_horovod.workloads.catalogue import SHAPES


@pytest.mark.parametrize("name", ["vgg16", "resnet50", "bert_base"])
def test_the_whole_step_is_computed_and_every_tensor_is_there(name):
    workload = SHAPES[name]()
    profile = profile_of(workload, 300_000.0)
    assert profile.compute_us == pytest.approx(300_000.0)
    assert profile.backward_us == pytest.approx(2 * profile.forward_us)
    assert len(profile.tensors) == workload.tensors
    assert profile.links == ()
    # Gradients come in the opposite order of use.
    assert profile.ready_us[0] == pytest.approx(profile.backward_us)
    assert profile.first_use_us[0] == 0.0
