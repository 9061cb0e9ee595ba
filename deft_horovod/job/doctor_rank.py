"""One rank that is examined: ``python -m`` this, and the folder for what rank 0 finds.

``deft-profile doctor`` starts it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from deft_horovod.config import Config
from deft_horovod.doctor.machine import Checkup, this_machine
from deft_horovod.errors import BuildMismatchError

ANSWER: Final = "checkup.json"


def checkup() -> Checkup:
    """Of all ranks; of this one alone where Horovod or the extension cannot be loaded."""
    rank = Config.launched_rank() or 0
    try:
        from deft_horovod.job.examination import examine
    except (BuildMismatchError, ImportError) as error:
        return Checkup(machines=(this_machine(rank, extension=str(error)),))
    import horovod.torch as hvd

    hvd.init()
    found = examine(Config.load(None))
    hvd.shutdown()
    return found


def main(folder: Path) -> int:
    """The exit status."""
    found = checkup()
    if not Config.launched_rank():
        found.save(folder / ANSWER)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
