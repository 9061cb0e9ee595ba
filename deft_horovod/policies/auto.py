"""auto: the policy for those who do not want to choose.

It plans nothing itself. While the job runs, the runtime lets stock Horovod, `bucket`, `priority`
and `least_stale` take turns, and `fewest_bytes` where wire formats are allowed. It keeps the
fastest, or stock Horovod where nothing gains enough.
"""

from __future__ import annotations

from deft_horovod.policies.least_stale import LeastStale


class Auto(LeastStale):
    name = "auto"
    summary = "measure the others in the job itself and keep the fastest"
