"""Runs a rank program as a child and reports how it ended, whatever the launcher does.

horovodrun terminates all ranks as soon as one fails. Here none fails, in its eyes: so what the
others do by themselves can be seen.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.parallel.scripts import launched
from tests.parallel.scripts.reporting import python, report


def _reported() -> Any:
    path = Path(os.environ["PARALLEL_RESULTS"]) / f"rank.{launched.rank()}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def main() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    here = Path(__file__).parent
    child = subprocess.run(
        [*python(), str(here.parent / sys.argv[1])],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    ended_s = time.time()
    print(child.stdout)
    output = child.stdout[-4000:]
    ended = {"status": child.returncode, "ended_s": ended_s, "output": output}
    report({**ended, "said": _reported()})


if __name__ == "__main__":
    main()
