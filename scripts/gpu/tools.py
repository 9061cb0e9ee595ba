"""`ip` and `tc` for a machine that has none: programs, their libraries, and scripts to run them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

NAMES = ("ip", "tc")
# Of each system its own.
NOT_TAKEN = ("ld-linux", "libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so")
STARTER = """\
#!/bin/sh
here=$(dirname "$(dirname "$(readlink -f "$0")")")
LD_LIBRARY_PATH=$here/lib exec "$here/programs/$(basename "$0")" "$@"
"""


def libraries_of(program: Path) -> list[Path]:
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True)
    places = (line.split("=>")[1].split()[0] for line in done.stdout.splitlines() if "=> /" in line)
    found = (Path(place) for place in places)
    return [path for path in found if not path.name.startswith(NOT_TAKEN)]


def gather(folder: Path) -> list[str]:
    """Copies what this machine has into a folder; the names of the tools."""
    found = {name: path for name in NAMES if (path := shutil.which(name))}
    for part in ("bin", "lib", "programs"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for name, path in found.items():
        shutil.copy(Path(path).resolve(), folder / "programs" / name)
        starter = folder / "bin" / name
        starter.write_text(STARTER, encoding="utf-8")
        starter.chmod(0o755)
        for library in libraries_of(Path(path)):
            shutil.copy(library, folder / "lib" / library.name)
    return list(found)
