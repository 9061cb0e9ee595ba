"""Which optimizer's profile ends a script, and when."""

import pytest
import torch

from deft_horovod.job.profile_request import ProfileRequest
from deft_horovod.profile import Profile
from deft_horovod.runtime.job_request import FEWEST_WARMUP_STEPS, Answered
from deft_horovod.runtime.ranks.single_rank import SingleRank

PROFILE = Profile.assumed(1)


def asked(problem="", progress=lambda *_: None):
    delivered = []
    request = ProfileRequest(
        5,
        7,
        lambda asked_optimizer, profile: delivered.append(asked_optimizer) or problem,
        progress,
    )
    return request, delivered


def tensors(*elements):
    return [torch.zeros(count) for count in elements]


def test_the_script_ends_with_the_profile_of_its_only_optimizer():
    request, delivered = asked()
    asked_optimizer = request.asked_optimizer("SGD", tensors(3, 4))
    assert not request.over
    with pytest.raises(Answered) as end:
        asked_optimizer.take(PROFILE, SingleRank())
    assert (end.value.code, request.over, delivered) == (0, True, [asked_optimizer])
    assert isinstance(end.value, SystemExit)
    assert asked_optimizer.gradient_bytes == 28


@pytest.mark.parametrize("first", ["small", "large"])
def test_the_largest_one_is_waited_for(first):
    request, delivered = asked()
    asked_optimizers = {
        "small": request.asked_optimizer("A", tensors(1)),
        "large": request.asked_optimizer("B", tensors(9)),
    }
    if first == "small":
        asked_optimizers["small"].take(PROFILE, SingleRank())
        assert delivered == []
    with pytest.raises(Answered):
        asked_optimizers["large"].take(PROFILE, SingleRank())
    assert delivered == [asked_optimizers["large"]]


def test_what_went_wrong_is_the_status():
    request, _ = asked(problem="the disk is full")
    with pytest.raises(Answered) as end:
        request.asked_optimizer("SGD", tensors(3)).take(PROFILE, SingleRank())
    assert end.value.code == 1


def test_whoever_goes_on_is_told_again():
    request, delivered = asked()
    asked_optimizer = request.asked_optimizer("SGD", tensors(3))
    with pytest.raises(Answered):
        asked_optimizer.take(PROFILE, SingleRank())
    with pytest.raises(Answered):
        asked_optimizer.end_boundary(None)
    assert len(delivered) == 1


def test_progress_is_that_of_the_largest():
    seen = []
    request, _ = asked(progress=lambda *steps: seen.append(steps))
    small, large = (
        request.asked_optimizer("A", tensors(1)),
        request.asked_optimizer("B", tensors(9)),
    )
    for _ in range(2):
        large.end_boundary(None)
        small.end_boundary(None)
        small.end_boundary(None)
    assert seen == [(1, 12), (2, 12)]
    for _ in range(20):
        large.end_boundary(None)
    assert seen[-1] == (12, 12)


def test_some_steps_always_come_first():
    request = ProfileRequest(0, 4, lambda *_: "")
    assert request.needed_steps == FEWEST_WARMUP_STEPS + 4
    assert request.main is None
