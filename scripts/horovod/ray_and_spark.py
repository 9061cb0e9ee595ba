"""An environment with Ray, Spark and the models of Kubeflow's API on top of the one it is made by.

They are for the tests of launchers alone: half a gigabyte that nothing else needs. It lies in
build/launchers/.venv.

    .venv/bin/python -m scripts.horovod.ray_and_spark
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from scripts.horovod.mpi_tree import make_environment
from scripts.places import ROOT

FOLDER: Final = ROOT / "build" / "launchers" / ".venv"
PACKAGES: Final = ("ray[train]==2.60.0", "pyspark==4.3.0", "kubeflow-trainer-api==2.3.0")


def install(folder: Path) -> int:
    """Does nothing where it is done; returns the status of pip."""
    python = make_environment(folder)
    record, wanted = folder / "packages", "\n".join([sys.version, sys.prefix, *PACKAGES])
    if record.is_file() and record.read_text(encoding="utf-8") == wanted:
        return 0
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-compile"]
    command += ["--disable-pip-version-check"]
    done = subprocess.run(
        [*command, *PACKAGES], capture_output=True, text=True, check=False, timeout=900
    )
    if done.returncode == 0:
        record.write_text(wanted, encoding="utf-8")
    else:
        print(done.stdout[-2000:], done.stderr[-4000:], sep="\n", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(install(FOLDER))
