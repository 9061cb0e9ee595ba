"""A request for the profile of a script."""

from __future__ import annotations

from typing import ClassVar

from deft_horovod.profile import Profile
from deft_horovod.runtime.job_request import JobRequest, Purpose


class ProfileRequest(JobRequest[Profile]):
    """Under stock Horovod, or on one rank alone."""

    purpose: ClassVar[Purpose] = "profile"
