"""``horovodrun -np N python -m deft_horovod train.py args...``: an unmodified Horovod script.

The script's ``import horovod.torch as hvd`` gets ``deft_horovod.torch``. Nothing of Horovod itself
is changed; with DEFT_DISABLE=1 the script runs exactly as without us.
"""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path
from typing import Final

from deft_horovod.config import Config
from deft_horovod.errors import DeftError

_USAGE: Final = """\
usage: horovodrun -np N python -m deft_horovod [--plan FILE] [-m MODULE | SCRIPT] [ARGUMENT ...]

Runs a Horovod training script for PyTorch with deft_horovod's DistributedOptimizer in the place of
Horovod's. --plan runs a saved plan, as DEFT_PLAN_FILE=FILE does. Options are read from the
environment or from the file that DEFT_CONFIG names:

"""


def substitute() -> None:
    """From now on ``horovod.torch`` means ours, in every import statement."""
    import horovod

    import deft_horovod.torch as ours

    sys.modules["horovod.torch"] = ours
    sys.modules["horovod.torch.elastic"] = ours.elastic
    horovod.torch = ours


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of a package around it
        return False


def main(arguments: list[str]) -> int:
    """Runs the script; its own exit status is ours."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE + Config.documentation())
        return 0 if arguments else 2
    if arguments[0] == "--plan":
        if len(arguments) < len(("--plan", "FILE", "SCRIPT")):
            print("deft_horovod: --plan needs a file and a script", file=sys.stderr)
            return 2
        Config.set_in_environment("plan_file", str(Path(arguments[1]).resolve()))
        arguments = arguments[2:]
    try:
        if not Config.load(None).disable:
            substitute()
    except DeftError as error:
        print(f"deft_horovod: {error}", file=sys.stderr)
        return 2
    if arguments[0] == "-m":
        if arguments == ["-m"]:
            print("deft_horovod: -m needs the name of a module", file=sys.stderr)
            return 2
        sys.argv = arguments[1:]
        sys.path.insert(0, "")
        if not _exists(arguments[1]):
            print(f"deft_horovod: there is no module {arguments[1]}", file=sys.stderr)
            return 2
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    script = Path(arguments[0])
    if not script.is_file():
        print(f"deft_horovod: there is no script {script}", file=sys.stderr)
        return 2
    sys.argv = arguments
    sys.path.insert(0, str(script.resolve().parent))
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
