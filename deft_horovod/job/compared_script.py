"""One rank of a script in which policies are compared: ``python -m`` this, ``--``, and the script.

``deft-profile compare`` starts it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from deft_horovod.comparison import Comparison
from deft_horovod.job.comparison_request import ComparisonRequest
from deft_horovod.job.rank_script import (
    Deliver,
    Progress,
    RankScript,
    options_and_words,
    subject_text,
)
from deft_horovod.runtime.job_request import AskedOptimizer

# Of the configuration, in the place of what the script or the environment says.
_OPTIONS: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {
        "policy": str,
        "accuracy": str,
        "max_delay": int,
        "max_merge": int,
        "trial_steps": int,
        "trial_rounds": int,
    }
)


class ComparedScript(RankScript[Comparison]):
    """A script with ``hvd.DistributedOptimizer``, on two ranks or more."""

    what: ClassVar[str] = "comparison"

    def request(
        self, options: argparse.Namespace, deliver: Deliver[Comparison], progress: Progress
    ) -> ComparisonRequest:
        given = {name: getattr(options, name) for name in _OPTIONS}
        over = {name: value for name, value in given.items() if value is not None}
        return ComparisonRequest(options.warmup, options.steps, over, deliver, progress)

    def answered(
        self, main: AskedOptimizer[Comparison], others: list[AskedOptimizer[Comparison]]
    ) -> str:
        beside = "; beside it ran " + ", ".join(map(subject_text, others)) if others else ""
        return f"compared with {subject_text(main)}{beside}"


def main(arguments: list[str]) -> int:
    """The exit status."""
    options = options_and_words(__doc__, arguments, **_OPTIONS)
    return ComparedScript(*options).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
