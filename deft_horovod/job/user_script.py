"""A user's script as the main program of this process, with ours in the place of Horovod's."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from deft_horovod.config import Config
from deft_horovod.peers import OVER_TORCH


def substitute() -> None:
    """From now on ``horovod.torch`` means ours, in every import statement. Over torch.distributed
    it is ``DistributedDataParallel`` that ours takes the place of."""
    if OVER_TORCH:
        from deft_horovod.distributed.substitute import substitute as substitute_ddp

        substitute_ddp(Config.load(None))
        return
    import horovod

    import deft_horovod.torch as ours

    sys.modules["horovod.torch"] = ours
    sys.modules["horovod.torch.elastic"] = ours.elastic
    horovod.torch = ours


def problem_with(words: Sequence[str]) -> str | None:
    """Why ``SCRIPT arguments`` or ``-m MODULE arguments`` cannot be run, if so."""
    if words[0] != "-m":
        return None if Path(words[0]).is_file() else f"there is no script {words[0]}"
    if len(words) == 1:
        return "-m needs the name of a module"
    return None if _exists(words[1]) else f"there is no module {words[1]}"


def run(words: Sequence[str]) -> None:
    """Runs it as ``python`` does, in this process."""
    if words[0] == "-m":
        sys.argv = list(words[1:])
        sys.path.insert(0, "")
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = list(words)
    sys.path.insert(0, str(Path(words[0]).resolve().parent))
    runpy.run_path(words[0], run_name="__main__")


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of a package around it
        return False
