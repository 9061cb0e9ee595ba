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
        5, 7, lambda subject, profile: delivered.append(subject) or problem, progress
    )
    return request, delivered


def tensors(*elements):
    return [torch.zeros(count) for count in elements]


def test_the_script_ends_with_the_profile_of_its_only_optimizer():
    request, delivered = asked()
    subject = request.subject("SGD", tensors(3, 4))
    assert not request.over
    with pytest.raises(Answered) as end:
        subject.take(PROFILE, SingleRank())
    assert (end.value.code, request.over, delivered) == (0, True, [subject])
    assert isinstance(end.value, SystemExit)
    assert subject.gradient_bytes == 28


@pytest.mark.parametrize("first", ["small", "large"])
def test_the_largest_one_is_waited_for(first):
    request, delivered = asked()
    subjects = {
        "small": request.subject("A", tensors(1)),
        "large": request.subject("B", tensors(9)),
    }
    if first == "small":
        subjects["small"].take(PROFILE, SingleRank())
        assert delivered == []
    with pytest.raises(Answered):
        subjects["large"].take(PROFILE, SingleRank())
    assert delivered == [subjects["large"]]


def test_what_went_wrong_is_the_status():
    request, _ = asked(problem="the disk is full")
    with pytest.raises(Answered) as end:
        request.subject("SGD", tensors(3)).take(PROFILE, SingleRank())
    assert end.value.code == 1


def test_whoever_goes_on_is_told_again():
    request, delivered = asked()
    subject = request.subject("SGD", tensors(3))
    with pytest.raises(Answered):
        subject.take(PROFILE, SingleRank())
    with pytest.raises(Answered):
        subject.end_boundary(None)
    assert len(delivered) == 1


def test_progress_is_that_of_the_largest():
    seen = []
    request, _ = asked(progress=lambda *steps: seen.append(steps))
    small, large = request.subject("A", tensors(1)), request.subject("B", tensors(9))
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
