"""``horovodrun -np N python -m deft_horovod train.py args...``: an unmodified Horovod script.

The script's ``import horovod.torch as hvd`` gets ``deft_horovod.torch``. Nothing of Horovod itself
is changed; with DEFT_DISABLE=1 the script runs exactly as without us. ``--torchrun`` does the same
for scripts of torch.distributed, whose ``DistributedDataParallel`` it is then.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Final

from deft_horovod.config import Config
from deft_horovod.errors import DeftError

_USAGE: Final = """\
usage: horovodrun -np N python -m deft_horovod [--plan FILE] [-m MODULE | SCRIPT] [ARGUMENT ...]
       torchrun --nproc-per-node N -m deft_horovod --torchrun [...] [-m MODULE | SCRIPT] [...]

Runs a Horovod training script for PyTorch with deft_horovod's DistributedOptimizer in the place of
Horovod's; with --torchrun, a script of torch.distributed with ours in the place of
DistributedDataParallel. --plan runs a saved plan, as DEFT_PLAN_FILE=FILE does. Options are read
from the environment or from the file that DEFT_CONFIG names:

"""


_OVER_TORCH: Final = "--torchrun"


def main(arguments: list[str]) -> int:
    """Runs the script; its own exit status is ours."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE + Config.documentation())
        return 0 if arguments else 2
    if arguments[0] == _OVER_TORCH:
        # First: from here on, ranks meet over torch.distributed.
        importlib.import_module("deft_horovod.distributed")
        arguments = arguments[1:]
    if arguments[:1] == ["--plan"]:
        if len(arguments) < len(("--plan", "FILE", "SCRIPT")):
            print("deft_horovod: --plan needs a file and a script", file=sys.stderr)
            return 2
        Config.set_in_environment("plan_file", str(Path(arguments[1]).resolve()))
        arguments = arguments[2:]
    if not arguments:
        print("deft_horovod: a script is missing", file=sys.stderr)
        return 2
    # Only now: it decides how ranks meet.
    script = importlib.import_module("deft_horovod.job.user_script")
    try:
        if not Config.load(None).disable:
            script.substitute()
    except DeftError as error:
        print(f"deft_horovod: {error}", file=sys.stderr)
        return 2
    problem = script.problem_with(arguments)
    if problem is not None:
        print(f"deft_horovod: {problem}", file=sys.stderr)
        return 2
    script.run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
