"""One rank of a script whose profile is wanted: ``python -m`` this, ``--``, and the script.

``deft-profile run`` starts it.
"""

from __future__ import annotations

import argparse
import sys
from typing import ClassVar

from deft_horovod.job.optimizer_watch import OptimizerWatch
from deft_horovod.job.profile_request import ProfileRequest
from deft_horovod.job.rank_script import (
    Deliver,
    Progress,
    RankScript,
    options_and_words,
    subject_text,
)
from deft_horovod.profile import Profile
from deft_horovod.runtime.job_request import AskedOptimizer


class ProfiledScript(RankScript[Profile]):
    """Any script: on one rank it needs no Horovod."""

    what: ClassVar[str] = "profile"

    def request(
        self, options: argparse.Namespace, deliver: Deliver[Profile], progress: Progress
    ) -> ProfileRequest:
        return ProfileRequest(options.warmup, options.steps, deliver, progress)

    def run(self) -> int:
        watch = OptimizerWatch(self._request)
        try:
            return super().run()
        finally:
            watch.close()

    def answered(self, main: AskedOptimizer[Profile], others: list[AskedOptimizer[Profile]]) -> str:
        beside = "; not of the smaller " + ", ".join(map(subject_text, others)) if others else ""
        return f"this is the profile of {subject_text(main)}{beside}"

    def refused(self, asked: AskedOptimizer[Profile], answer: Profile) -> str:
        if answer.steps:
            return ""
        return (
            f"no step of {subject_text(asked)} could be measured: backward() has to give each of "
            f"its gradients equally often in every step{self.nothing}"
        )


def main(arguments: list[str]) -> int:
    """The exit status."""
    return ProfiledScript(*options_and_words(__doc__, arguments)).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
