"""auto: the policy for those who do not want to choose. It makes the plans of `bucket`."""

from __future__ import annotations

from deft_horovod.policies.bucket import Bucketed


class Auto(Bucketed):
    name = "auto"
    summary = "choose for me (makes the plans of 'bucket')"
